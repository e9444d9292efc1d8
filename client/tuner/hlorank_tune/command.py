"""The command ``hlorank-tune``, and the compilers that it knows."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from types import ModuleType
from typing import Any

from hlorank import ArgumentError, Client, HlorankError
from hlorank.checks.files import decoded, file_content
from hlorank.wire.address import authorization
from hlorank_tune import server, values
from hlorank_tune.compiler import Compiler
from hlorank_tune.credentials import channel_credentials
from hlorank_tune.measure.atomic_files import file_name

COMPILERS = {
    "xla": "hlorank_tune.xla.command",
    "options": "hlorank_tune.xla.options_command",
    "iree": "hlorank_tune.iree.command",
}
"""Modules by name of the compiler. Each has, and imports nothing large to have it:

* ``SUMMARY``, a sentence without a full stop, and ``FILE``, which says what is tuned
* ``MEASUREMENTS``, how many candidates are measured by default
* ``EXAMPLES``, commands with what they do
* ``EXTRA``, what ``pip install hlorank-tune`` needs in addition, such as ``[iree]`` needs
* ``add_options(parser)``, which adds the options that other compilers lack
* ``compiler_of(given)``, which returns the ``Compiler`` of the arguments
"""

_CODES = """\
exit codes: 0 the search is complete, 1 it failed, 2 wrong arguments, 130 stopped by Ctrl-C.
The same command continues a stopped search; with a larger budget, it continues one that ended, too.
"""


def command_of(name: str) -> ModuleType:
    """Returns the module of a compiler."""
    return import_module(COMPILERS[name])


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # Terminals may lack letters, such as the sign of microseconds, in any line.
            stream.reconfigure(errors="replace")
    commands = parser()
    given = commands.parse_args(arguments)
    for name in ("model", "target"):
        if given.without_model and getattr(given, name):
            commands.error(f"--{name} does not apply with --without-model, which asks no server")
    try:
        return _tune(given)
    except HlorankError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        reason = error.strerror or "an operation failed"
        print(f"error: {error.filename or 'the system'}: {reason}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        install = f"install it with pip install 'hlorank-tune{command_of(given.command).EXTRA}'"
        print(f"error: the package {error.name} is not installed: {install}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; the same command continues the search", file=sys.stderr)
        return 130


def parser() -> argparse.ArgumentParser:
    """Returns the parser of all commands."""
    examples = [example for name in COMPILERS for example in command_of(name).EXAMPLES]
    lines = [f"  hlorank-tune {what:<38}  {result}" for what, result in examples]
    every = argparse.ArgumentParser(
        prog="hlorank-tune",
        description="Finds faster configurations of a program: a hlorank server ranks candidates, "
        "and the best are measured beside the program as it is.",
        epilog="\n".join([_CODES, "examples:", *lines]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = every.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", required=True
    )
    for name in COMPILERS:
        command = command_of(name)
        one = commands.add_parser(name, help=command.SUMMARY, description=f"{command.SUMMARY}.")
        one.add_argument("file", metavar="FILE", help=command.FILE)
        _add_server(one)
        _add_search(one, command.MEASUREMENTS)
        command.add_options(one)
    return every


def _add_server(one: argparse.ArgumentParser) -> None:
    """Adds the options of the server, which are those of the program ``hlorank``."""
    add = one.add_argument

    def add_variable(
        flag: str, read: Callable[[str], Any], metavar: str, what: str, default: str | None = None
    ) -> None:
        """Adds an option that a variable of the environment may give, unless it is empty."""
        name = f"HLORANK_{flag.replace('-', '_').upper()}"
        default = os.environ.get(name) or default
        read = values.of_variable(name, read)
        what = what.replace("VARIABLE", name)
        add(f"--{flag}", type=read, default=default, metavar=metavar, help=what)

    add_variable(
        "endpoint",
        values.addresses,
        "ADDRESS",
        "address of the hlorank server, or of replicas with commas between them, of which the "
        "first that answers is asked (VARIABLE; default: %(default)s)",
        "127.0.0.1:7070",
    )
    add_variable(
        "ca",
        values.path,
        "FILE",
        "certificate authorities to trust at https://, in PEM (VARIABLE; default: those of the "
        "system)",
    )
    add_variable(
        "certificate",
        values.two_paths,
        "CERTIFICATE,KEY",
        "certificate and its key for servers that require one, in PEM (VARIABLE)",
    )
    add_variable(
        "token-file",
        values.path,
        "FILE",
        "file with the token to send with every call (VARIABLE; default: the token in "
        "HLORANK_TOKEN)",
    )
    add(
        "--model",
        type=values.model,
        metavar="NAME[@VERSION]",
        help="model that ranks (default: that of the compiler, or of the server)",
    )
    add(
        "--without-model",
        action="store_true",
        help="search without a server, by measurements alone",
    )
    add(
        "--target",
        type=values.target,
        metavar="NAME",
        help="name of hardware, compiler and flags, under which a server with --measurements keeps "
        "what is measured and learns from it in later searches (default: this processor, the "
        "compiler's version and the threads)",
    )


def _add_search(one: argparse.ArgumentParser, measurements: str) -> None:
    add = one.add_argument
    add(
        "--measurements",
        type=values.count,
        metavar="N",
        help=f"maximum number of measured candidates (default: {measurements})",
    )
    add(
        "--minutes",
        type=values.positive,
        metavar="M",
        help="maximum duration in minutes, with confirmation",
    )
    add(
        "--predictions",
        type=values.count,
        metavar="N",
        help="candidates that the model ranks before each round of measurements",
    )
    add(
        "--top-k",
        type=values.count,
        metavar="K",
        help="candidates that a round measures: the best that the model ranked",
    )
    add("--seed", type=values.natural, default=0, help="of random choices (default: %(default)s)")
    add(
        "--out",
        type=values.path,
        metavar="FOLDER",
        help="folder of the results; a stopped search continues from it (default: tuned/NAME)",
    )
    add(
        "--replay",
        type=values.path,
        metavar="FOLDER",
        help="measure the winner of this folder again, beside the program as it is",
    )


def _client(given: argparse.Namespace) -> Client:
    # The file comes first: a flag of this call says more than a variable of the whole shell.
    if given.token_file:
        token = decoded(file_content(given.token_file), given.token_file, HlorankError)
    else:
        token = os.environ.get("HLORANK_TOKEN") or None
    try:
        authorization(token)
    except ArgumentError as error:
        raise HlorankError(f"{given.token_file or 'HLORANK_TOKEN'}: {error}") from error
    for number, endpoint in enumerate(given.endpoint, 1):
        credentials = channel_credentials(endpoint, given.ca, given.certificate)
        client = server.Client(endpoint, credentials=credentials, token=token)
        if number == len(given.endpoint) or server.absence(client) is None:
            break
        client.close()
    return client


def _tune(given: argparse.Namespace) -> int:
    command = command_of(given.command)
    compiler: Compiler[Any] = command.compiler_of(given)
    if given.replay:
        return _replay(compiler, given.replay)
    from hlorank_tune.report import ProgressLines, write_report
    from hlorank_tune.tuning import search

    default = compiler.settings
    settings = replace(
        default,
        measurements=given.measurements or default.measurements,
        seconds=None if given.minutes is None else 60 * given.minutes,
        predictions=given.predictions or default.predictions,
        top_k=given.top_k or default.top_k,
        seed=given.seed,
    )
    out = given.out or Path("tuned") / file_name(compiler.program)
    with nullcontext() if given.without_model else _client(given) as client:
        run = search(
            compiler,
            client,
            out,
            settings,
            model=given.model,
            target=given.target,
            listener=ProgressLines(compiler.version()),
        )
    for line in (run.kept, f"{run}; {write_report(out)}", compiler.use(run, out)):
        if line:
            print(line)
    return 0


def _replay(compiler: Compiler[Any], folder: Path) -> int:
    from hlorank_tune.run import duration
    from hlorank_tune.tuning import replay

    for name, outcome in replay(compiler, folder).items():
        words = [f"{name:<8}", f"{duration(outcome.nanoseconds):>9}", f"{outcome.ratio:.3f}"]
        works = outcome.nanoseconds is not None
        print("  ".join(words if works else [words[0], outcome.status, outcome.message]))
    return 0
