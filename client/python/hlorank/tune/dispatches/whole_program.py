"""A whole program with and without tuning specs."""

from collections.abc import Sequence
from pathlib import Path

from hlorank.iree.compiler import SPEC_FLAG, STABLEHLO_FLAGS, compile_text
from hlorank.iree.measure import measure_modules, measuring_worker
from hlorank.iree.runtime import ProgramSubject
from hlorank.measure.rounds import Protocol
from hlorank.measure.workers import WorkerError
from hlorank.tune.dispatches.run import TuneError
from hlorank.tune.dispatches.subject import StablehloProgram

CONFIRM = Protocol(rounds=12, seconds=1.0, tries=60)
"""Protocol of the measurements of the whole program."""


def program_modules(program: StablehloProgram, specs: Sequence[Path | None]) -> list[bytes]:
    """Compiles a program with each tuning spec, once per spec; None is without one.

    Raises:
        CompileError: if IREE cannot compile it.
    """
    modules = {spec: _module(program, spec) for spec in dict.fromkeys(specs)}
    return [modules[spec] for spec in specs]


def _module(program: StablehloProgram, spec: Path | None) -> bytes:
    flags = () if spec is None else (f"{SPEC_FLAG}={spec}",)
    return compile_text(program.text, (*STABLEHLO_FLAGS, *flags))


def replay(program: StablehloProgram, spec: Path) -> tuple[float, float]:
    """Measures a program without and with a tuning spec again, in nanoseconds.

    Raises:
        TuneError: if the program does not run, or its results differ with the spec.
    """
    modules = program_modules(program, [None, spec])
    with measuring_worker() as worker:
        try:
            measured = measure_modules(worker, ProgramSubject(program.arguments), modules, CONFIRM)
        except WorkerError as error:
            raise TuneError(f"'{program.name}' does not run: it {error}") from error
    if measured.errors[1]:
        raise TuneError(f"the program with {spec} is wrong: {measured.errors[1]}")
    default, tuned = measured.nanoseconds.tolist()
    return default, tuned
