"""Options that several commands have, and how a command runs."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

TASKS = ("layout", "tile")
# Repeats names of loss and registry, so that --help needs neither jax nor torch.
LOSSES = ("logistic", "hinge", "list_mle", "log_mse")
ARCHITECTURE = "graphsage-transformer-segment"

Command = Callable[[argparse.Namespace], None]


def run(parser: argparse.ArgumentParser) -> None:
    """Parses the command line and runs one command.

    A call to a server that fails, or a measurement, ends the program with one sentence.
    """
    arguments = parser.parse_args()
    # Only now, so that --help and wrong arguments need no gRPC.
    from hlorank import HlorankError

    try:
        arguments.command(arguments)
    except HlorankError as error:
        raise SystemExit(f"{arguments.called}: {error}") from None


def add_command(
    subparsers: Any, command: Command, tasks: Sequence[str] = (), name: str | None = None
) -> argparse.ArgumentParser:
    """Adds a command, whose first argument is one of ``tasks`` if there are any."""
    name = name or command.__name__.replace("_", "-")
    parser = subparsers.add_parser(name, help=command.__doc__, description=command.__doc__)
    if tasks:
        parser.add_argument("task", choices=tasks, help="kind of configurations")
    # Without "python -m PACKAGE".
    called = parser.prog.split(maxsplit=3)[-1]
    parser.set_defaults(command=command, called=called)
    return parser


def add_kinds(subparsers: Any, name: str, about: str) -> Any:
    """Adds a command that has other options for every kind; returns where kinds are added."""
    parser = subparsers.add_parser(name, help=about, description=about)
    return parser.add_subparsers(title="kinds", metavar="KIND", required=True)


def add_kind(kinds: Any, kind: str, command: Command) -> argparse.ArgumentParser:
    """Adds a kind of a command."""
    parser = add_command(kinds, command, name=kind)
    parser.set_defaults(task=kind)
    return parser


def add_data(parser: argparse.ArgumentParser) -> None:
    """Adds the folder of the tuning files, and the program that reads them."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    add_hlorank(parser)


def add_hlorank(parser: argparse.ArgumentParser) -> None:
    """Adds the program that is the featurizer."""
    parser.add_argument("--hlorank", type=Path, required=True, help="path of the program hlorank")


def add_feature_graphs(parser: argparse.ArgumentParser) -> None:
    """Adds the folder of measured graphs of a feature set, and how long networks learn."""
    parser.add_argument("--data", type=Path, required=True, help="folder of the measured graphs")
    parser.add_argument(
        "--epochs", type=int, default=60, help="epochs of every network (default: %(default)s)"
    )


def add_minutes(parser: argparse.ArgumentParser) -> None:
    """Adds the time of a training."""
    parser.add_argument("--minutes", type=float, default=6.0, help="maximum minutes per model")


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Adds the seed of a training."""
    parser.add_argument("--seed", type=int, default=1, help="random seed (default: 1)")


def add_architecture(parser: argparse.ArgumentParser) -> None:
    """Adds the architecture of a model."""
    parser.add_argument(
        "--architecture",
        default=ARCHITECTURE,
        help="architecture; an unknown name lists those that exist (default: %(default)s)",
    )


def add_training(parser: argparse.ArgumentParser, losses: Sequence[str]) -> None:
    """Adds the options of a training of a model of layouts or tiles."""
    add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    add_minutes(parser)
    add_seed(parser)
    parser.add_argument("--loss", choices=losses, help="loss function (default: the preset's)")
    add_architecture(parser)


def add_run(parser: argparse.ArgumentParser) -> None:
    """Adds the measured graphs, and the run that is evaluated on them."""
    add_data(parser)
    parser.add_argument("--run", type=Path, required=True, help="folder of the checkpoint")


def add_export(parser: argparse.ArgumentParser) -> None:
    """Adds the runs that become an artifact, and the artifact."""
    add_data(parser)
    parser.add_argument(
        "--run",
        type=Path,
        nargs="+",
        required=True,
        help="folder of the checkpoint; several make an ensemble, the mean of their scores",
    )
    parser.add_argument("--version", type=int, required=True, help="version of the artifact")
    add_artifact(parser)


def add_artifact(parser: argparse.ArgumentParser) -> None:
    """Adds the registry and the name of an artifact."""
    parser.add_argument("--out", type=Path, required=True, help="folder of the registry")
    parser.add_argument("--name", required=True, help="name of the model")
