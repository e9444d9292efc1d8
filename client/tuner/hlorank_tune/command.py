"""The command ``hlorank-tune``."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from hlorank import HlorankError
from hlorank_tune import values
from hlorank_tune.compiler import Compiler
from hlorank_tune.compilers import COMPILERS, command_of
from hlorank_tune.measure.atomic_files import file_name
from hlorank_tune.subject import Settings

_CODES = """\
exit codes: 0 the search is complete, 1 it failed, 2 wrong arguments, 130 stopped by Ctrl-C.
The same command continues a stopped search.
"""
_EXAMPLE_OF_REPORT = "report tuned/a tuned/b", "compare searches in one plot"
_OF_A_MODEL = ("model", "target")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    commands = parser()
    given = commands.parse_args(arguments)
    if given.command is None:
        commands.error(f"name what to tune for: {', '.join(COMPILERS)}; or report")
    if problem := _does_not_apply(given):
        commands.error(problem)
    try:
        return _report(given) if given.command == "report" else _tune(given)
    except (HlorankError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        print(
            f"error: {error}; install it with pip install 'hlorank-tune{_extra(given)}'",
            file=sys.stderr,
        )
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command continues the search", file=sys.stderr)
        return 130


def _extra(given: argparse.Namespace) -> str:
    return "" if given.command == "report" else command_of(given.command).EXTRA


def _does_not_apply(given: argparse.Namespace) -> str:
    """Names an option that would be ignored; empty if there is none."""
    if given.command == "report" or not given.without_model:
        return ""
    for name in _OF_A_MODEL:
        if getattr(given, name, None):
            return f"--{name} does not apply with --without-model, which asks no server"
    return ""


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    every = argparse.ArgumentParser(
        prog="hlorank-tune",
        description="Finds faster configurations of a program: a hlorank server ranks candidates, "
        "and the best are measured beside the program as it is.",
        epilog=_epilog(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = every.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name in COMPILERS:
        command = command_of(name)
        summary = command.SUMMARY
        one = commands.add_parser(name, help=summary, description=f"{summary}.")
        one.add_argument("file", metavar="FILE", help=command.FILE)
        _add_endpoint(one)
        _add_limits(one, command.MEASUREMENTS)
        _add_folders(one)
        command.add_options(one)
    summary = "writes one report about the results of several searches"
    report = commands.add_parser("report", help=summary, description=f"{summary}.")
    report.add_argument("folders", type=_path, nargs="+", metavar="FOLDER", help="of results")
    report.add_argument(
        "--out", type=_path, metavar="FOLDER", help="of the report (default: the first folder)"
    )
    return every


def _epilog() -> str:
    """Returns the exit codes, and examples of every command."""
    examples = [example for name in COMPILERS for example in command_of(name).EXAMPLES]
    examples.append(_EXAMPLE_OF_REPORT)
    lines = [f"  hlorank-tune {what:<38}  {result}" for what, result in examples]
    return "\n".join([_CODES, "examples:", *lines])


def _add_folders(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--out",
        type=_path,
        metavar="FOLDER",
        help="folder of the results; a stopped search continues from it (default: tuned/NAME)",
    )
    one.add_argument(
        "--replay",
        type=_path,
        metavar="FOLDER",
        help="measure the winner of this folder again, beside the program as it is",
    )


def _add_endpoint(one: argparse.ArgumentParser) -> None:
    one.add_argument(
        "--endpoint",
        type=values.address,
        default=os.environ.get("HLORANK_ENDPOINT") or "127.0.0.1:7070",
        metavar="ADDRESS",
        help="address of the hlorank server (HLORANK_ENDPOINT; default: %(default)s)",
    )
    one.add_argument(
        "--model",
        type=values.model,
        metavar="NAME[@VERSION]",
        help="model that ranks (default: that of the compiler, or of the server)",
    )
    one.add_argument(
        "--without-model",
        action="store_true",
        help="search without a server, by measurements alone",
    )
    one.add_argument(
        "--target",
        type=values.target,
        metavar="NAME",
        help="name of hardware, compiler and flags, under which a server with --measurements keeps "
        "what is measured and learns from it in later searches (default: this processor, the "
        "compiler's version and the threads)",
    )


def _add_limits(one: argparse.ArgumentParser, measurements: str) -> None:
    one.add_argument(
        "--measurements",
        type=values.count,
        metavar="N",
        help=f"maximum number of measured candidates (default: {measurements})",
    )
    one.add_argument(
        "--minutes",
        type=values.minutes,
        metavar="M",
        help="maximum duration in minutes, or with a unit such as 90s or 1.5h, with confirmation",
    )
    one.add_argument(
        "--top-k",
        type=values.count,
        metavar="K",
        help="candidates that a round measures: the best that the model ranked",
    )
    one.add_argument(
        "--seed",
        type=values.natural,
        default=0,
        help="seed of random choices (default: %(default)s)",
    )


def _path(text: str) -> Path:
    return Path(values.path_text(text))


def _tune(given: argparse.Namespace) -> int:
    command = command_of(given.command)
    compiler = command.compiler_of(given)
    if given.replay:
        return _replay(compiler, given.replay)
    return _search(compiler, _settings(given, command, compiler), given)


def _settings(given: argparse.Namespace, command: ModuleType, compiler: Compiler[Any]) -> Settings:
    default = compiler.settings()
    return command.settings_of(
        given,
        replace(
            default,
            measurements=given.measurements or default.measurements,
            seconds=None if given.minutes is None else 60 * given.minutes,
            top_k=given.top_k or default.top_k,
            seed=given.seed,
        ),
    )


def _search(compiler: Compiler[Any], settings: Settings, given: argparse.Namespace) -> int:
    from rich.console import Console

    from hlorank_tune.live import LiveTable
    from hlorank_tune.report import write_report
    from hlorank_tune.tuning import search

    out = given.out or Path("tuned") / file_name(compiler.program)
    console = Console()
    with LiveTable(console, settings.measurements, version=compiler.version()) as live:
        run = search(
            compiler,
            None if given.without_model else given.endpoint,
            out,
            settings,
            model=given.model,
            target=given.target,
            measure=not getattr(given, "no_measure", False),
            listener=live,
        )
    report = write_report([out], out)
    for line in (run.kept, f"{run}; {report}", compiler.use(run, out)):
        if line:
            console.print(line, highlight=False, markup=False, soft_wrap=True)
    return 0


def _report(given: argparse.Namespace) -> int:
    from hlorank_tune.report import write_report

    print(write_report(given.folders, given.out or given.folders[0]))
    return 0


def _replay(compiler: Compiler[Any], folder: Path) -> int:
    from hlorank_tune.run import duration
    from hlorank_tune.tuning import side_by_side

    outcomes = side_by_side(compiler, {"winner": folder})
    for name, outcome in outcomes.items():
        words = [f"{name:<8}", f"{duration(outcome.nanoseconds):>9}", f"{outcome.ratio:.3f}"]
        works = outcome.nanoseconds is not None
        print("  ".join(words if works else [words[0], outcome.status, outcome.message]))
    return 0
