"""The command line: ``python -m hlorank_training COMMAND ...``."""

import argparse
from pathlib import Path
from typing import Any

import hlorank_training
from hlorank_training import commands
from hlorank_training.options import (
    LOSSES,
    TASKS,
    add_artifact,
    add_command,
    add_data,
    add_export,
    add_feature_graphs,
    add_kind,
    add_kinds,
    add_run,
    add_seed,
    add_training,
    run,
)


def main() -> None:
    """Parses the command line and runs one command."""
    run(_parser())


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
    add_run(add_command(subparsers, commands.evaluate, TASKS))
    _add_export(subparsers)
    add_data(add_command(subparsers, commands.held_out, TASKS))
    return parser


def _add_collect(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.collect, tuple(commands.MEASURED))
    parser.add_argument("--out", type=Path, required=True, help="folder for the tuning files")
    parser.add_argument(
        "--minutes", type=float, default=240.0, help="maximum duration (default: %(default)s)"
    )
    parser.add_argument(
        "--source",
        choices=sorted({source for sources in commands.MEASURED.values() for source in sources}),
        help="compiler (default: xla; halide for feature-set)",
    )


def _add_describe(subparsers: Any) -> None:
    parser = add_command(subparsers, commands.describe)
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    parser.add_argument("--out", type=Path, required=True, help="folder for the plots")


def _add_train(subparsers: Any) -> None:
    kinds = add_kinds(subparsers, "train", "Train a model and measure its quality.")
    for task in TASKS:
        add_training(add_kind(kinds, task, commands.train), LOSSES)
    fusion = add_kind(kinds, "fusion", commands.train_fusion)
    add_data(fusion)
    fusion.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    add_seed(fusion)
    feature_set = add_kind(kinds, "feature-set", commands.train_feature_set)
    add_feature_graphs(feature_set)
    add_artifact(feature_set)
    feature_set.add_argument("--version", type=int, default=1, help="version (default: 1)")
    feature_set.add_argument(
        "--members",
        type=int,
        default=1,
        help="models with different seeds, whose mean is exported (default: %(default)s)",
    )
    feature_set.add_argument(
        "--order",
        action="store_true",
        help="learn the order of a graph's configurations alone, if columns do not say how large "
        "the graph is",
    )


def _add_export(subparsers: Any) -> None:
    kinds = add_kinds(subparsers, "export", "Write the artifact of a trained model.")
    for task in TASKS:
        add_export(add_kind(kinds, task, commands.export))
    add_export(add_kind(kinds, "fusion", commands.export_fusion))


if __name__ == "__main__":
    main()
