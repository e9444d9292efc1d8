"""The command ``hlorank-tune``."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from hlorank.errors import HlorankError
from hlorank.measure.atomic_files import file_name
from hlorank.measure.script import load_module
from hlorank.task import Task
from hlorank.tune import values
from hlorank.tune.program import FusionProgram, Program, TiledKernel

_EPILOG = """\
exit codes: 0 the search is complete, 1 it failed, 2 wrong arguments, 130 stopped by Ctrl-C.
The same command continues a stopped search; one for Halide begins again.

examples:
  hlorank-tune --compiler iree model.py:program         tiles of IREE's dispatches: spec.mlir
  hlorank-tune --compiler iree model.mlir --no-measure  the same from the model alone
  hlorank-tune --compiler halide blur.py:blur           schedules of a Halide pipeline: schedule.h
  hlorank-tune step.hlo                                 layouts of a dumped module
  hlorank-tune model.py:program --measurements 16       layouts of a hlorank.tune.Program
  hlorank-tune kernel.py:kernel --minutes 5             tiles of your own loops, a TiledKernel
  hlorank-tune --fusion model.py:program                what XLA:CPU computes in one kernel
  hlorank-tune step.hlo --without-model --out tuned/b   measurements alone
  hlorank-tune --report tuned/a tuned/b                 compare two searches in one plot
  hlorank-tune step.hlo --replay tuned/a                measure the winner again
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    for warning in values.unknown_variables():
        print(warning, file=sys.stderr)
    if not given.report and given.program is None:
        parser.error("name a PROGRAM, or folders to --report")
    if problem := _does_not_apply(given):
        parser.error(problem)
    try:
        if given.report:
            return _report(given)
        if given.compiler == "iree":
            if given.fusion:
                parser.error("--fusion needs --compiler xla")
            from hlorank.tune.dispatches.command import tune_with_iree

            return tune_with_iree(given, load)
        if given.compiler == "halide":
            if given.fusion or given.no_measure:
                parser.error("--fusion and --no-measure do not apply to --compiler halide")
            from hlorank.tune.schedules.command import tune_with_halide

            return tune_with_halide(given)
        if given.no_measure:
            parser.error("--no-measure needs --compiler iree, since only its result is a file")
        return _replay(given) if given.replay else _tune(given)
    except (HlorankError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        extras = "halide" if given.compiler == "halide" else "tune,iree"
        print(f"error: {error}; install it with pip install 'hlorank[{extras}]'", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        continues = "begins" if given.compiler == "halide" else "continues"
        print(f"stopped; the same command {continues} the search", file=sys.stderr)
        return 130


_OF_HALIDE = ("draws", "param")
_OF_A_MODEL = ("model", "target", "record")


def _does_not_apply(given: argparse.Namespace) -> str:
    """Names an option that would be ignored; empty if there is none."""
    if given.report and given.program is not None:
        return f"--report reads folders only: omit {given.program}"
    if given.compiler != "halide":
        for name in _OF_HALIDE:
            if getattr(given, name):
                return f"--{name} needs --compiler halide"
    if given.compiler == "iree" and given.threads != 1:
        return "--threads does not apply to --compiler iree, which measures on one thread"
    if given.without_model:
        for name in _OF_A_MODEL:
            if getattr(given, name):
                return f"--{name} does not apply with --without-model, which asks no server"
    return ""


def _parser() -> argparse.ArgumentParser:
    from hlorank.tune.dispatches.settings import TileSettings
    from hlorank.tune.schedules.run import ScheduleSettings
    from hlorank.tune.search import STRATEGIES, Settings

    default = Settings("")
    parser = argparse.ArgumentParser(
        prog="hlorank-tune",
        description="Finds faster layouts or fusions of an XLA program, or faster tiles of your "
        "own loops, of IREE's kernels, or faster schedules of a Halide pipeline: a hlorank server "
        "ranks candidates, and the best are measured beside your program.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "program",
        nargs="?",
        metavar="PROGRAM",
        help="file with an HLO module before optimization (text, HloModuleProto, HloProto or "
        "ModuleTuningData) or, for IREE, StableHLO text (.mlir); or a Program or TiledKernel, or "
        "for Halide a function that returns a pipeline, as FILE.py:NAME or MODULE:NAME",
    )
    parser.add_argument(
        "--compiler",
        choices=["xla", "iree", "halide"],
        default="xla",
        help="xla (default) tunes layouts, or the tiles of a TiledKernel; iree tunes the tiles of "
        "every dispatch of a program and writes a tuning spec for iree-compile; halide tunes the "
        "schedule of a pipeline",
    )
    parser.add_argument(
        "--fusion",
        action="store_true",
        help="tune the fusions of a Program on XLA:CPU in place of its layouts",
    )
    parser.add_argument(
        "--no-measure",
        action="store_true",
        help="with IREE, write the spec of the tiles that the model puts first, unmeasured",
    )
    parser.add_argument(
        "--server",
        type=values.address,
        default="127.0.0.1:7070",
        metavar="ADDRESS",
        help="address of the hlorank server (default: %(default)s)",
    )
    parser.add_argument(
        "--model",
        type=values.model,
        metavar="NAME[@VERSION]",
        help="model that ranks (default: the server's default for the task; with IREE, "
        "tile-iree-cpu)",
    )
    parser.add_argument(
        "--without-model",
        action="store_true",
        help="search without a server, by measurements alone",
    )
    parser.add_argument(
        "--target",
        type=values.target,
        metavar="NAME",
        help="name of hardware, compiler and flags, under which a server with --measurements keeps "
        "what is measured and learns from it in later searches (default: this processor, the "
        "compiler's version and the threads)",
    )
    parser.add_argument(
        "--strategy",
        choices=list(dict.fromkeys(name for names in STRATEGIES.values() for name in names)),
        help="for layouts genetic (default), annealing or random; for fusions annealing (default), "
        "genetic or random; for tiles exhaustive",
    )
    parser.add_argument(
        "--measurements",
        type=values.count,
        metavar="N",
        help="maximum number of measured candidates, your program included (default: "
        f"{default.measurements}); with IREE, of measured tiles per dispatch (default: "
        f"{TileSettings.measurements}); with Halide, of schedules beside the greedy one (default: "
        f"{ScheduleSettings.measurements})",
    )
    parser.add_argument(
        "--draws",
        type=values.count,
        metavar="N",
        help="with Halide, schedules that are drawn and that the model ranks (default: "
        f"{ScheduleSettings.draws})",
    )
    parser.add_argument(
        "--param",
        action="append",
        metavar="NAME=VALUE",
        help="with Halide, the value of a GeneratorParam of a generator class; may be repeated",
    )
    parser.add_argument(
        "--minutes",
        type=values.minutes,
        metavar="M",
        help="maximum duration in minutes, or with a unit such as 90s or 1.5h, with confirmation",
    )
    parser.add_argument(
        "--predictions",
        type=values.count,
        default=default.predictions,
        metavar="N",
        help="candidates that the model ranks before each round of measurements "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--top-k",
        type=values.count,
        default=default.top_k,
        metavar="K",
        help="best of those, which a round measures (default: %(default)s)",
    )
    parser.add_argument(
        "--seed",
        type=values.natural,
        default=0,
        help="seed of random choices (default: %(default)s)",
    )
    parser.add_argument(
        "--threads",
        type=values.natural,
        default=1,
        metavar="N",
        help="threads of the program; 0 for as many as XLA uses (default: %(default)s, as in the "
        "training data)",
    )
    parser.add_argument(
        "--out",
        type=_path,
        metavar="FOLDER",
        help="folder of the results; a stopped search continues from it (default: tuned/NAME)",
    )
    parser.add_argument(
        "--record",
        type=_path,
        metavar="FILE",
        help="record the calls to the server as a trace for `hlorank bench --trace`",
    )
    parser.add_argument(
        "--report",
        type=_path,
        nargs="+",
        metavar="FOLDER",
        help="write one report about these folders into --out (default: the first folder)",
    )
    parser.add_argument(
        "--replay", type=_path, metavar="FOLDER", help="measure the winner of this folder again"
    )
    return parser


def _path(text: str) -> Path:
    return Path(values.path_text(text))


def _tune(given: argparse.Namespace) -> int:
    from rich.console import Console

    from hlorank.tune.live import LiveTable
    from hlorank.tune.report import write_report
    from hlorank.tune.search import STRATEGIES, Settings
    from hlorank.tune.tuning import tune

    subject = _subject(given)
    task = _task(subject)
    strategies = STRATEGIES[task]
    strategy = given.strategy or strategies[0]
    if strategy not in strategies:
        raise HlorankError(
            f"strategy '{strategy}' does not apply to {task}s, expected: {', '.join(strategies)}"
        )
    settings = Settings(
        strategy,
        measurements=given.measurements or Settings.measurements,
        seconds=None if given.minutes is None else 60 * given.minutes,
        predictions=given.predictions,
        top_k=given.top_k,
        seed=given.seed,
    )
    out = given.out or Path("tuned") / file_name(subject.name)
    server = None if given.without_model else given.server
    console = Console()
    with LiveTable(console, settings.measurements) as live:
        run = tune(
            subject,
            server,
            out,
            settings,
            model=given.model,
            target=given.target,
            threads=given.threads,
            record=given.record,
            listener=live,
        )
    if run.kept:
        console.print(run.kept, highlight=False, soft_wrap=True)
    console.print(f"{run}; {write_report([out], out)}", highlight=False, soft_wrap=True)
    if task == "fusion" and run.best:
        use = f"use it: hlorank.measure.fusion.saved.load('{out}')"
        console.print(use, highlight=False, soft_wrap=True)
    return 0


def _subject(given: argparse.Namespace) -> Program | TiledKernel:
    """Loads the program that the command line names, as what it should be tuned as.

    Raises:
        HlorankError: if it does not exist, or is no program although fusions should be tuned.
    """
    subject = load(given.program)
    if not given.fusion:
        return subject
    if not isinstance(subject, Program):
        raise HlorankError(f"{given.program} is a TiledKernel, but --fusion needs a Program")
    return FusionProgram.of(subject)


def _task(subject: Program | TiledKernel) -> Task:
    if isinstance(subject, FusionProgram):
        return "fusion"
    return "layout" if isinstance(subject, Program) else "tile"


def _report(given: argparse.Namespace) -> int:
    from hlorank.tune.report import write_report

    print(write_report(given.report, given.out or given.report[0]))
    return 0


def _replay(given: argparse.Namespace) -> int:
    from hlorank.tune.duration import duration
    from hlorank.tune.tuning import replay

    outcomes = replay(_subject(given), given.replay, threads=given.threads)
    for name, outcome in outcomes.items():
        words = [f"{name:<8}", f"{duration(outcome.nanoseconds):>9}", f"{outcome.ratio:.3f}"]
        works = outcome.nanoseconds is not None
        print("  ".join(words if works else [words[0], outcome.status, outcome.message]))
    return 0


def load(name: str) -> Program | TiledKernel:
    """Loads the program that the command line names.

    Raises:
        HlorankError: if it does not exist.
    """
    place, colon, attribute = name.rpartition(":")
    if not colon or Path(name).exists():
        if name.endswith(".py"):
            raise HlorankError(f"add the name of the program in the script, as in {name}:NAME")
        return Program.from_file(name)
    module = load_module(place)
    found = getattr(module, attribute, None)
    if not isinstance(found, Program | TiledKernel):
        what = f"a {type(found).__name__}" if found is not None else "not defined"
        raise HlorankError(f"{name} is {what}, expected a hlorank.tune.Program or TiledKernel")
    return found


if __name__ == "__main__":
    sys.exit(main())
