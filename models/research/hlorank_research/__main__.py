"""The command line: ``python -m hlorank_research COMMAND ...``."""

import argparse
from pathlib import Path
from typing import Any

import hlorank_research
from hlorank_research import commands
from hlorank_training.options import (
    LOSSES,
    TASKS,
    add_architecture,
    add_command,
    add_data,
    add_export,
    add_feature_graphs,
    add_hlorank,
    add_kind,
    add_kinds,
    add_minutes,
    add_run,
    add_training,
    run,
)

# Repeats names of papers.losses, so that --help needs no torch.
ALL_LOSSES = (
    *LOSSES,
    "kaufman-hinge",
    "kaufman-logistic",
    "kaufman-log-mse",
    "tgraph-hinge",
    "tgraph-hinge-mean",
    "gst-hinge",
    "singh-relative",
    "tpugraphs-list-mle",
)


def main() -> None:
    """Parses the command line and runs one command."""
    run(_parser())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hlorank_research",
        description=hlorank_research.__doc__,
        epilog="COMMAND --help lists a command's options.",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_train(subparsers)
    add_run(add_command(subparsers, commands.evaluate, TASKS))
    add_export(add_command(subparsers, commands.export, TASKS))
    _add_compare(subparsers)
    _add_within_graph(subparsers)
    _add_replay(subparsers)
    _add_study(subparsers)
    _add_fixtures(subparsers)
    _add_check_texts(subparsers)
    return parser


def _add_train(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.train, TASKS)
    add_training(parser, ALL_LOSSES)
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


def _add_compare(subparsers: Any) -> None:
    kinds = add_kinds(subparsers, "compare", "Compare models on the same held-out measurements.")
    for task in TASKS:
        parser = add_kind(kinds, task, commands.compare)
        _add_comparison(parser)
        add_minutes(parser)
        add_architecture(parser)
        parser.add_argument(
            "--epochs", type=int, help="maximum epochs of every model (default: the preset's)"
        )
    fusion = add_kind(kinds, "fusion", commands.compare_fusion)
    _add_comparison(fusion)
    fusion.add_argument(
        "--epochs", type=int, default=30, help="epochs of every model (default: %(default)s)"
    )
    add_feature_graphs(add_kind(kinds, "feature-set", commands.compare_feature_set))


def _add_comparison(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for what is trained")
    parser.add_argument("--workers", type=int, default=2, help="models trained in parallel")


def _add_within_graph(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.within_graph, ("layout",))
    add_data(parser)
    add_minutes(parser)
    add_architecture(parser)
    parser.add_argument(
        "--seeds", type=int, default=3, help="models whose scores are averaged (default: 3)"
    )
    parser.add_argument(
        "--server",
        help="address of an hlorank server, whose default model adapts to some of the measured "
        "configurations, for comparison (default: none)",
    )


def _add_replay(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.replay, TASKS)
    add_data(parser)
    _add_server(parser)
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


def _add_study(subparsers: Any) -> None:
    kinds = add_kinds(subparsers, "study", "Measure what tuning with a server's model gains.")
    _add_tuner_study(add_kind(kinds, "layout", commands.study))
    _add_iree_study(add_kind(kinds, "iree", commands.study_iree))
    _add_fusion_study(add_kind(kinds, "fusion", commands.study_fusion))
    _add_trust_study(add_kind(kinds, "trust", commands.study_trust))


def _add_tuner_study(parser: argparse.ArgumentParser) -> None:
    add_data(parser)
    _add_server(parser)
    _add_searches(parser)
    parser.add_argument("--subjects", type=int, default=10, help="number of programs")
    parser.add_argument("--seeds", type=int, default=3, help="number of searches of each")


def _add_iree_study(parser: argparse.ArgumentParser) -> None:
    _add_server(parser)
    parser.add_argument(
        "--model", default="tile-iree-cpu", help="model that ranks (default: %(default)s)"
    )
    _add_searches(parser)


def _add_fusion_study(parser: argparse.ArgumentParser) -> None:
    _add_server(parser)
    _add_searches(parser)
    parser.add_argument(
        "--programs", nargs="+", required=True, metavar="NAME", help="programs of the zoo"
    )
    parser.add_argument(
        "--minutes", type=float, default=1, help="with the model (default: %(default)s)"
    )
    parser.add_argument(
        "--minutes-without", type=float, default=10, help="without it (default: %(default)s)"
    )


def _add_trust_study(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data", type=Path, required=True, help="the folder that measured*.tar.xz unpack to"
    )
    parser.add_argument(
        "--tpugraphs", type=Path, nargs="*", default=(), metavar="FILE", help="files of layouts"
    )
    add_hlorank(parser)
    _add_server(parser)


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--server", default="127.0.0.1:7070", help="address of the hlorank server")


def _add_searches(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="folder of the searches")


def _add_fixtures(subparsers: Any) -> None:
    kinds = add_kinds(subparsers, "fixtures", "Write files of tests/data.")
    for task in TASKS:
        parser = add_kind(kinds, task, commands.measured_fixtures)
        add_data(parser)
        _add_folder(parser)
    pool = add_kind(kinds, "pool", commands.pool_fixture)
    add_data(pool)
    pool.add_argument("--all", action="store_true", help="every kernel, not unseen families")
    pool.add_argument("--out", type=Path, required=True, help="the file to write")
    graphs = add_kind(kinds, "whole-graphs", commands.whole_graph_fixtures)
    graphs.add_argument("--measured", type=Path, required=True, help="folder of held-out files")
    add_hlorank(graphs)
    graphs.add_argument("--out", type=Path, required=True, help="the registry's folder")
    texts = add_kind(kinds, "texts", commands.text_fixtures)
    texts.add_argument("--data", type=Path, required=True, help="path of the folder tests/data")
    _add_folder(add_kind(kinds, "fusion", commands.fusion_fixtures))


def _add_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="folder for the fixtures")


def _add_check_texts(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.check_texts)
    parser.add_argument("folder", type=Path, help="folder of HLO texts, such as a dump of XLA")
    add_hlorank(parser)
    parser.add_argument(
        "--parse",
        action="store_true",
        help="compare with what jaxlib's parser makes of the text, even if the module is beside it",
    )


if __name__ == "__main__":
    main()
