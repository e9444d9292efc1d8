"""The command line: ``python -m hlorank_training COMMAND TASK ...``."""

import argparse
from pathlib import Path

from . import __doc__ as purpose
from . import commands

TASKS = ("layout", "tile")


def main() -> None:
    """Parse the command line and run one command."""
    arguments = _parser().parse_args()
    arguments.command(arguments)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m hlorank_training",
        description=purpose,
        epilog="COMMAND --help lists a command's options.",
    )
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_collect(subparsers)
    _add_train(subparsers)
    _add_evaluate(subparsers)
    _add_export(subparsers)
    _add_fixtures(subparsers)
    return parser


def _add(subparsers, command) -> argparse.ArgumentParser:
    name, description = command.__name__, command.__doc__
    parser = subparsers.add_parser(name, help=description, description=description)
    parser.add_argument("task", choices=TASKS, help="what is tuned")
    parser.set_defaults(command=command)
    return parser


def _add_collect(subparsers) -> None:
    parser = _add(subparsers, commands.collect)
    parser.add_argument("--out", type=Path, required=True, help="folder for the tuning files")
    parser.add_argument("--minutes", type=float, required=True, help="when to stop")


def _add_train(subparsers) -> None:
    parser = _add(subparsers, commands.train)
    _add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the checkpoint")
    parser.add_argument("--minutes", type=float, default=6.0, help="longest training time")
    parser.add_argument("--seed", type=int, default=1, help="of weights, order and draws")


def _add_evaluate(subparsers) -> None:
    parser = _add(subparsers, commands.evaluate)
    _add_data(parser)
    parser.add_argument("--run", type=Path, required=True, help="folder of the checkpoint")


def _add_export(subparsers) -> None:
    parser = _add(subparsers, commands.export)
    _add_data(parser)
    parser.add_argument("--run", type=Path, required=True, help="folder of the checkpoint")
    parser.add_argument("--out", type=Path, required=True, help="the registry's folder")
    parser.add_argument("--version", type=int, required=True, help="version of the artifact")


def _add_fixtures(subparsers) -> None:
    parser = _add(subparsers, commands.fixtures)
    _add_data(parser)
    parser.add_argument("--out", type=Path, required=True, help="folder for the fixtures")


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the tuning files")
    parser.add_argument("--hlorank", type=Path, required=True, help="the hlorank program")


if __name__ == "__main__":
    main()
