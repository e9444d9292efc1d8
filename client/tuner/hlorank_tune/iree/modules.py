"""Compiles the tiles of dispatches, and whole programs with tuning specs."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from hlorank_tune.iree.compile_worker import Compiler
from hlorank_tune.iree.compiler import SPEC_FLAG, STABLEHLO_FLAGS, CompileError, compile_text
from hlorank_tune.iree.dispatches import Choices, TunedDispatch
from hlorank_tune.iree.program import StablehloProgram
from hlorank_tune.iree.spec import applied, missing, tuning_spec
from hlorank_tune.measure.workers import Worker


class Compilers:
    """Processes that compile tiles, one for each processor."""

    def __init__(self, stack: ExitStack):
        """The processes end with ``stack``."""
        self.count = max(1, len(os.sched_getaffinity(0)))
        workers = [Worker("hlorank_tune.iree.compile_worker") for _ in range(self.count)]
        self._compilers = [Compiler(stack.enter_context(worker)) for worker in workers]

    def compiled(self, texts: Sequence[str]) -> list[bytes | CompileError]:
        """Compiles on all processors; returns the errors of those that do not compile."""
        shares = [list(range(i, len(texts), self.count)) for i in range(self.count)]
        modules: list[bytes | CompileError] = [b""] * len(texts)

        def compile_share(compiler: Compiler, share: list[int]) -> None:
            for i in share:
                try:
                    modules[i] = compiler.compile(texts[i])
                except CompileError as error:
                    modules[i] = error

        with ThreadPoolExecutor(self.count) as pool:
            list(pool.map(compile_share, self._compilers, shares))
        return modules


def spec_text(subjects: Sequence[TunedDispatch], choices: Choices) -> str:
    """Returns the tuning spec of chosen tiles."""
    by_name = {subject.name: subject.dispatch for subject in subjects}
    return tuning_spec([(by_name[name], tile) for name, tile in choices.items()])


@contextmanager
def spec_file(subjects: Sequence[TunedDispatch], choices: Choices) -> Iterator[Path]:
    """Gives a file with a tuning spec, as long as it is needed."""
    with TemporaryDirectory(prefix="hlorank-") as folder:
        path = Path(folder, "spec.mlir")
        path.write_text(spec_text(subjects, choices))
        yield path


def unreached(
    program: StablehloProgram, subjects: Sequence[TunedDispatch], choices: Choices
) -> list[str]:
    """Returns the dispatches that IREE rewrites after it reads a spec, of those with a choice.

    Raises:
        CompileError: if IREE refuses one of the tiles.
    """
    if not choices:
        return []
    with spec_file(subjects, choices) as path:
        return missing(choices, applied(program.text, str(path), STABLEHLO_FLAGS))


def program_modules(program: StablehloProgram, specs: Sequence[Path | None]) -> list[bytes]:
    """Compiles a program with each tuning spec, once per spec; None is without one.

    Raises:
        CompileError: if IREE cannot compile it.
    """
    modules = {spec: program_module(program, spec) for spec in dict.fromkeys(specs)}
    return [modules[spec] for spec in specs]


def program_module(program: StablehloProgram, spec: Path | None) -> bytes:
    """Compiles a program with a tuning spec, or without one."""
    flags = () if spec is None else (f"{SPEC_FLAG}={spec}",)
    return compile_text(program.text, (*STABLEHLO_FLAGS, *flags))
