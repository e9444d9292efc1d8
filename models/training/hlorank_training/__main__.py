"""The command line: ``python -m hlorank_training COMMAND TASK ...``."""

import argparse
from pathlib import Path

import hlorank_training
from hlorank_training import commands

TASKS = ("layout", "tile")
ALL_TASKS = (*TASKS, "fusion")
# Repeats names of collect_tile, loss and registry, so that --help needs neither jax nor torch.
LOSSES = (
    "logistic",
    "hinge",
    "list_mle",
    "log_mse",
    "kaufman-hinge",
    "kaufman-logistic",
    "kaufman-log-mse",
    "tgraph-hinge",
    "tgraph-hinge-mean",
    "gst-hinge",
    "tpugraphs-list-mle",
    "singh-relative",
)
ARCHITECTURE = "graphsage-transformer-segment"


def main() -> None:
    """Parses the command line and runs one command.

    A call to a server that fails, or a measurement, ends the program with one sentence.
    """
    arguments = _parser().parse_args()
    # Only now, so that --help and wrong arguments need no gRPC.
    from hlorank.errors import HlorankError

    try:
        arguments.command(arguments)
    except HlorankError as error:
        raise SystemExit(f"{arguments.command.__name__.replace('_', '-')}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hlorank_training",
        description=hlorank_training.__doc__,
        epilog="COMMAND --help lists a command's options.",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_collect(subparsers)
    _add_describe(subparsers)
    _add_train(subparsers)
    _add_evaluate(subparsers)
    _add_data(_add(subparsers, commands.held_out))
    _add_compare(subparsers)
    _add_within_graph(subparsers)
    _add_replay(subparsers)
    _add_study(subparsers)
    _add_study_iree(subparsers)
    _add_study_fusion(subparsers)
    _add_study_halide(subparsers)
    _add_compare_feature_set(subparsers)
    _add_train_feature_set(subparsers)
    _add_export(subparsers)
    _add_fixtures(subparsers)
    _add_pool_fixture(subparsers)
    _add_whole_graph_fixtures(subparsers)
    _add_text_fixtures(subparsers)
    _add_check_texts(subparsers)
    _add_fusion_fixtures(subparsers)
    return parser


def _add(subparsers, command, tasks=TASKS) -> argparse.ArgumentParser:
    name, description = command.__name__.replace("_", "-"), command.__doc__
    parser = subparsers.add_parser(name, help=description, description=description)
    if tasks:
        parser.add_argument("task", choices=tasks, help="kind of configurations")
    parser.set_defaults(command=command)
    return parser


def _add_collect(subparsers) -> None:
    parser = _add(subparsers, commands.collect, tasks=tuple(commands.MEASURED))
    parser.add_argument("--out", type=Path, required=True, help="folder for the tuning files")
    parser.add_argument(
        "--minutes", type=float, default=240.0, help="maximum duration (default: %(default)s)"
    )
    parser.add_argument(
        "--source",
        choices=sorted({source for sources in commands.MEASURED.values() for source in sources}),
        help="compiler (default: xla; halide for feature-set)",
    )


def _add_describe(subparsers) -> None:
    parser = _add(subparsers, commands.describe, tasks=())
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plots")


def _add_train(subparsers) -> None:
    parser = _add(subparsers, commands.train, tasks=ALL_TASKS)
    _add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    _add_minutes(parser)
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
    parser.add_argument("--loss", choices=LOSSES, help="loss function (default: the preset's)")
    _add_architecture(parser)
    parser.add_argument(
        "--preset",
        default="small",
        help="sizes and hyperparameters: small, or paper for the published ones (default: small)",
    )
    parser.add_argument(
        "--pad-value",
        type=int,
        choices=(0, -1),
        help="value of the empty places of lists of features: 0 for TpuGraphs' npz files of "
        "layouts (default: the architecture's, -1 for TGraph and 0 for others)",
    )


def _add_architecture(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--architecture",
        default=ARCHITECTURE,
        help="architecture; an unknown name lists those that exist (default: %(default)s)",
    )


def _add_evaluate(subparsers) -> None:
    parser = _add(subparsers, commands.evaluate)
    _add_data(parser)
    parser.add_argument("--run", type=Path, required=True, help="folder of the checkpoint")


def _add_compare(subparsers) -> None:
    parser = _add(subparsers, commands.compare, tasks=ALL_TASKS)
    _add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoints")
    _add_minutes(parser)
    _add_architecture(parser)
    parser.add_argument(
        "--epochs", type=int, help="maximum epochs of every model (default: the preset's)"
    )
    parser.add_argument("--workers", type=int, default=2, help="models trained in parallel")


def _add_within_graph(subparsers) -> None:
    parser = _add(subparsers, commands.within_graph, tasks=("layout",))
    _add_data(parser)
    _add_minutes(parser)
    _add_architecture(parser)
    parser.add_argument(
        "--seeds", type=int, default=3, help="models whose scores are averaged (default: 3)"
    )
    parser.add_argument(
        "--server",
        help="address of an hlorank server, whose default model adapts to some of the measured "
        "configurations, for comparison (default: none)",
    )


def _add_replay(subparsers) -> None:
    parser = _add(subparsers, commands.replay)
    _add_data(parser)
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")
    parser.add_argument("--model", help="model that ranks (default: the task's default model)")
    parser.add_argument(
        "--unknown",
        action="store_true",
        help="replay every list, because the model learned from none of this hardware or compiler "
        "(default: only held-out lists)",
    )
    parser.add_argument(
        "--earlier",
        type=int,
        default=0,
        metavar="N",
        help="also replay searches while the server, which needs --measurements, keeps N random "
        "measurements of every other list (default: %(default)s)",
    )
    parser.add_argument(
        "--within",
        type=float,
        nargs="+",
        default=[0.05, 0.02, 0.01],
        metavar="SHARE",
        help="by how much the configuration that is found may be slower than the fastest (default: "
        "%(default)s)",
    )


def _add_study(subparsers) -> None:
    parser = _add(subparsers, commands.study, tasks=("layout",))
    _add_data(parser)
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")
    parser.add_argument("--out", type=Path, required=True, help="folder of the searches")
    parser.add_argument("--subjects", type=int, default=10, help="number of programs")
    parser.add_argument("--seeds", type=int, default=3, help="number of searches of each")


def _add_study_iree(subparsers) -> None:
    parser = _add(subparsers, commands.study_iree, tasks=())
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")
    parser.add_argument(
        "--model", default="tile-iree-cpu", help="model that ranks (default: %(default)s)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the searches")


def _add_study_fusion(subparsers) -> None:
    parser = _add(subparsers, commands.study_fusion, tasks=())
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")
    parser.add_argument("--out", type=Path, required=True, help="folder of the searches")
    parser.add_argument(
        "--programs", nargs="+", required=True, metavar="NAME", help="programs of the zoo"
    )
    parser.add_argument(
        "--minutes", type=float, default=1, help="with the model (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes-without", type=float, default=10, help="without it (default: %(default)s)"
    )


def _add_study_halide(subparsers) -> None:
    parser = _add(subparsers, commands.study_halide, tasks=())
    parser.add_argument("--data", type=Path, required=True, help="folder of the measured graphs")
    parser.add_argument(
        "--pipelines",
        nargs="+",
        required=True,
        metavar="NAME",
        help="graphs that the model was not trained on",
    )
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")
    parser.add_argument("--model", help="model that ranks (default: that of the feature set)")
    parser.add_argument("--out", type=Path, required=True, help="file of the results")


def _add_compare_feature_set(subparsers) -> None:
    _add_feature_graphs(_add(subparsers, commands.compare_feature_set, tasks=()))


def _add_train_feature_set(subparsers) -> None:
    parser = _add(subparsers, commands.train_feature_set, tasks=())
    _add_feature_graphs(parser)
    parser.add_argument("--out", type=Path, required=True, help="registry of the artifact")
    parser.add_argument("--name", required=True, help="name of the model")
    parser.add_argument("--version", type=int, default=1, help="version (default: 1)")
    parser.add_argument(
        "--members",
        type=int,
        default=1,
        help="models with different seeds, whose mean is exported (default: %(default)s)",
    )


def _add_feature_graphs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the measured graphs")
    parser.add_argument(
        "--epochs", type=int, default=60, help="epochs of every network (default: %(default)s)"
    )


def _add_export(subparsers) -> None:
    parser = _add(subparsers, commands.export, tasks=ALL_TASKS)
    _add_data(parser)
    parser.add_argument(
        "--run",
        type=Path,
        nargs="+",
        required=True,
        help="folder of the checkpoint; several make an ensemble, the mean of their scores",
    )
    parser.add_argument("--out", type=Path, required=True, help="the registry's folder")
    parser.add_argument("--name", required=True, help="name of the artifact")
    parser.add_argument("--version", type=int, required=True, help="version of the artifact")


def _add_fixtures(subparsers) -> None:
    parser = _add(subparsers, commands.fixtures)
    _add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the fixtures")


def _add_pool_fixture(subparsers) -> None:
    parser = _add(subparsers, commands.pool_fixture, tasks=())
    _add_data(parser)
    parser.add_argument("--all", action="store_true", help="every kernel, not unseen families")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")


def _add_whole_graph_fixtures(subparsers) -> None:
    parser = _add(subparsers, commands.whole_graph_fixtures, tasks=())
    parser.add_argument("--measured", type=Path, required=True, help="folder of held-out files")
    _add_hlorank(parser)
    parser.add_argument("--out", type=Path, required=True, help="the registry's folder")


def _add_text_fixtures(subparsers) -> None:
    parser = _add(subparsers, commands.text_fixtures, tasks=())
    parser.add_argument("--data", type=Path, required=True, help="path of the folder tests/data")


def _add_check_texts(subparsers) -> None:
    parser = _add(subparsers, commands.check_texts, tasks=())
    parser.add_argument("folder", type=Path, help="folder of HLO texts, such as a dump of XLA")
    _add_hlorank(parser)
    parser.add_argument(
        "--parse",
        action="store_true",
        help="compare with what jaxlib's parser makes of the text, even if the module is beside it",
    )


def _add_fusion_fixtures(subparsers) -> None:
    parser = _add(subparsers, commands.fusion_fixtures, tasks=())
    parser.add_argument("--out", type=Path, required=True, help="folder for the modules")


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    _add_hlorank(parser)


def _add_hlorank(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hlorank", type=Path, required=True, help="path of the program hlorank")


def _add_minutes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=6.0, help="maximum minutes per model")


if __name__ == "__main__":
    main()
