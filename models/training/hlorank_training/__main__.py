"""The command line: ``python -m hlorank_training COMMAND ...``."""

import argparse
from pathlib import Path

import hlorank_training
from hlorank_training import commands

# Repeats a name of the registry, so that --help needs no torch.
ARCHITECTURE = "graphsage-transformer-segment"


def main() -> None:
    """Parses the command line and runs one command.

    A measurement that fails ends the program with one sentence.
    """
    arguments = _parser().parse_args()
    # Only now, so that --help and wrong arguments need no gRPC.
    from hlorank import HlorankError

    try:
        arguments.command(arguments)
    except (HlorankError, ValueError) as error:
        raise SystemExit(f"{arguments.called}: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hlorank_training",
        description=hlorank_training.__doc__,
        epilog="COMMAND --help lists a command's options.",
    )
    parsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    collect = _add(parsers, "collect", commands.collect, "measures run times")
    collect.add_argument(
        "task",
        choices=("layout", "tile", "fusion", "feature-set"),
        help="what is measured; a feature-set is that of TVM's candidates",
    )
    collect.add_argument("--out", type=Path, required=True, help="folder for the measurements")
    collect.add_argument("--minutes", type=float, default=240.0, help="maximum (default: 240)")

    kinds = _kinds(parsers, "train", "trains a model and measures its quality")
    for task in ("layout", "tile", "fusion"):
        command = commands.train_fusion if task == "fusion" else commands.train
        train = _add_data(_add(kinds, task, command, f"a model of {task}s"))
        train.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
        train.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")
        if task == "fusion":
            continue
        train.add_argument("--minutes", type=float, help="maximum (default: the preset's)")
        train.add_argument(
            "--architecture",
            default=ARCHITECTURE,
            help="an unknown name lists those that exist (default: %(default)s)",
        )
        train.add_argument(
            "--preset",
            default="small",
            help="sizes and hyperparameters: small, or paper for the published ones of an "
            "architecture of a paper (default: %(default)s)",
        )
        train.add_argument(
            "--pad-value",
            type=int,
            choices=(0, -1),
            help="value of the empty places of lists of features: 0 for TpuGraphs' npz files of "
            "layouts (default: the architecture's, -1 for TGraph and 0 for others)",
        )
    columns = _add(kinds, "feature-set", commands.train_feature_set, "writes the artifact, too")
    columns.add_argument("--data", type=Path, required=True, help="folder of the measured graphs")
    columns.add_argument("--epochs", type=int, default=60, help="(default: %(default)s)")
    columns.add_argument(
        "--members",
        type=int,
        default=1,
        help="models with different seeds, whose mean is exported (default: %(default)s)",
    )
    columns.add_argument(
        "--order",
        action="store_true",
        help="learn the order of a graph's configurations alone, if columns do not say how large "
        "the graph is",
    )
    _add_artifact(columns)
    columns.add_argument("--version", type=int, default=1, help="version (default: 1)")

    export = _kinds(parsers, "export", "writes the artifact of a run")
    held_out = _add(parsers, "held-out", commands.held_out, "lists files that no training reads")
    held_out.add_argument("task", choices=("layout", "tile"))
    _add_data(held_out)
    for task in ("layout", "tile", "fusion"):
        one = _add_data(_add(export, task, commands.export, f"a model of {task}s"))
        one.add_argument("--run", type=Path, required=True, help="folder of the checkpoint")
        one.add_argument("--version", type=int, required=True, help="version of the artifact")
        _add_artifact(one)
    return parser


def _kinds(parsers, name: str, about: str):
    """Adds a command that has other options for every kind; returns where kinds are added."""
    parser = parsers.add_parser(name, help=about, description=about)
    return parser.add_subparsers(title="kinds", metavar="KIND", required=True)


def _add(parsers, name: str, command, about: str) -> argparse.ArgumentParser:
    parser = parsers.add_parser(name, help=about, description=about)
    # Without "python -m PACKAGE"; the name of a kind is its task.
    called = parser.prog.split(maxsplit=3)[-1]
    parser.set_defaults(command=command, called=called, task=name)
    return parser


def _add_data(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Adds the folder of the tuning files, and the program that reads them."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    parser.add_argument("--hlorank", type=Path, required=True, help="path of the program hlorank")
    return parser


def _add_artifact(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, required=True, help="folder of the registry")
    parser.add_argument("--name", required=True, help="name of the model")


if __name__ == "__main__":
    main()
