"""IREE as a compiler of the tuner: tiles of every dispatch, and a tuning spec for the program."""

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from hlorank_tune.compiler import Compiler, Report
from hlorank_tune.iree.compiler import STABLEHLO_FLAGS, CompileError, Compilers, compiler_version
from hlorank_tune.iree.dispatch import Dispatch, find_dispatches, with_tile
from hlorank_tune.iree.dispatches import Choices, TunedDispatch, WholeProgram
from hlorank_tune.iree.program import StablehloProgram
from hlorank_tune.iree.runtime import DispatchLoader, ProgramLoader, harness
from hlorank_tune.iree.spec import program_module, tuning_spec, unreached
from hlorank_tune.iree.tiles import TileSizes
from hlorank_tune.measure.atomic_files import write_atomically
from hlorank_tune.measure.host import Measured, measure_programs
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker, WorkerError
from hlorank_tune.run import Measurement, Run
from hlorank_tune.server import default_target
from hlorank_tune.subject import Outcome, ProgramError, Settings, Subject, outcomes_of

SPEC_FILE = "spec.mlir"
_GAIN = 0.02
"""Smallest gain of a tile that is taken into the spec."""
_UNREACHED = "a tuning spec does not reach it"


class IreeCompiler(Compiler[TileSizes | None]):
    """IREE with a program, whose dispatches it tunes one by one."""

    task = "tile"
    settings = Settings(measurements=8)
    model = "tile-iree-cpu"
    reference = "your program as IREE compiles it"
    parts = 0
    search = Protocol(warmups=1, rounds=6, most_rounds=40, seconds=0.2, tries=20)
    confirm = Protocol(rounds=12, seconds=1.0, tries=60)

    def __init__(self, program: StablehloProgram):
        self.program = program.name
        self.whole = WholeProgram()
        self._program = program
        self._subjects: list[TunedDispatch] = []
        self._left: dict[str, str] = {}
        self._reason = ""
        self._stack = ExitStack()
        self._worker: Worker | None = None
        self._compilers: Compilers | None = None

    def close(self) -> None:
        """Ends the processes."""
        self._stack.close()
        self._worker = None
        self._compilers = None

    def identity(self) -> dict[str, Any]:
        """Returns the digest of the program, and the version of IREE."""
        return {"compiler": f"iree {compiler_version()}", "identity": self._program.identity}

    def target(self) -> str:
        """Names the target of IREE's programs on this machine, which run on one thread."""
        return default_target(f"IREE {compiler_version()}")

    def subjects(self, report: Report) -> Sequence[TunedDispatch]:
        """Returns the dispatches whose tiles a tuning spec can set.

        Raises:
            ProgramError: if IREE cannot compile the program, or makes no dispatches of it.
        """
        report("finding the dispatches")
        try:
            found = find_dispatches(self._program.text, STABLEHLO_FLAGS)
        except CompileError as error:
            raise ProgramError(f"IREE cannot compile '{self.program}': {error}") from error
        if not found:
            name = f"IREE makes no dispatches of '{self.program}'"
            if not self._program.arguments:
                raise ProgramError(
                    f"{name}: its function main has no arguments, so that IREE computes all of it "
                    "while it compiles; pass what varies as arguments of main"
                )
            raise ProgramError(
                f"{name}: nothing that it computes depends on its arguments, so that IREE computes "
                "it while it compiles, or only copies them"
            )
        self._left |= {one.name: one.untunable for one in found if one.space is None}
        tunable = [one for one in found if one.space is not None]
        self._subjects = [TunedDispatch(one) for one in tunable]
        # IREE rewrites the root of some after it reads a spec.
        random = np.random.default_rng(0)
        drawn = {subject.name: subject.space.draw(random, 1) for subject in self._subjects}
        tiles = {name: tiles[0] for name, tiles in drawn.items() if tiles}
        try:
            lost = unreached(self._program, tunable, tiles)
        except CompileError:
            lost = []  # A tile is refused; the spec of the fastest tiles is checked later.
        self._subjects = [subject for subject in self._subjects if subject.name not in lost]
        self._left |= dict.fromkeys(lost, _UNREACHED)
        return self._subjects

    def left_alone(self) -> Mapping[str, str]:
        """Returns the dispatches that have no tile to set, with the reason."""
        return self._left

    def counts(self, measurement: Measurement) -> bool:
        """Returns whether a tile was measured, and not the compiler's choice."""
        return bool(measurement.candidate)

    def measure(
        self,
        subject: Subject[Any],
        candidates: Sequence[Any],
        protocol: Protocol,
        seconds: float,
        report: Report,
    ) -> list[Outcome]:
        """Measures tiles of a dispatch, or the program with the tiles of a spec."""
        if isinstance(subject, TunedDispatch):
            return self._measure_tiles(subject, candidates, protocol, seconds, report)
        return self._measure_programs(candidates, protocol, seconds, report)

    def _measure_tiles(
        self,
        subject: TunedDispatch,
        candidates: Sequence[TileSizes | None],
        protocol: Protocol,
        seconds: float,
        report: Report,
    ) -> list[Outcome]:
        """Measures tiles in the same rounds as the compiler's choice."""
        dispatch = subject.dispatch
        tiles = [tile for tile in candidates if tile is not None]
        report(f"compiling {subject.name}")
        texts = [dispatch.configured, *(with_tile(dispatch, tile) for tile in tiles)]
        if self._compilers is None:
            self._compilers = Compilers(self._stack)
        modules = self._compilers.compiled([harness(dispatch, text) for text in texts])
        if not isinstance(modules[0], bytes):
            raise ProgramError(f"{subject.name} does not compile alone: {modules[0]}")
        report(f"measuring {subject.name}")
        loader = DispatchLoader(dispatch.bindings)
        outcomes = outcomes_of(self._measured(loader, modules, protocol, seconds, report))
        # The reference is measured in any case, whether it is a candidate of this batch or not.
        own = [outcomes[0]] * (len(candidates) - len(tiles))
        return [*own, *outcomes[1:]]

    def _measure_programs(
        self, candidates: Sequence[Choices], protocol: Protocol, seconds: float, report: Report
    ) -> list[Outcome]:
        """Measures the program with the tiles of each candidate, the first of which has none."""
        report("compiling the program with the spec")
        try:
            dispatches = self._dispatches()
            modules = [program_module(self._program, dispatches, one) for one in candidates]
        except CompileError as error:
            raise ProgramError(f"the spec does not compile: {error}") from error
        report("measuring the program without and with the spec")
        loader = ProgramLoader(self._program.arguments)
        measured = self._measured(loader, modules, protocol, seconds, report)
        return outcomes_of(measured, float(np.nanmax(measured.noise)))

    def _found(self) -> Sequence[TunedDispatch]:
        """Returns the dispatches, which need not have been asked for."""
        return self._subjects or self.subjects(lambda _: None)

    def _dispatches(self) -> list[Dispatch]:
        return [subject.dispatch for subject in self._found()]

    def _measured(
        self,
        loader: DispatchLoader | ProgramLoader,
        modules: Sequence[bytes | CompileError],
        protocol: Protocol,
        seconds: float,
        report: Report,
    ) -> Measured:
        if self._worker is None:
            # On the last processor, so that other processes can use the others meanwhile.
            processors = [max(os.sched_getaffinity(0))]
            self._worker = Worker("hlorank_tune.measure.host", processors)
            self._stack.enter_context(self._worker)
        given = [module if isinstance(module, bytes) else str(module) for module in modules]
        try:
            measured = measure_programs(self._worker, loader, given, protocol, seconds, report)
        except WorkerError as error:
            raise ProgramError(f"'{self.program}' does not run as it is: {error}") from error
        for i, module in enumerate(modules):
            if isinstance(module, CompileError):
                measured.failures[i] = module.failure
        return measured

    def combined(self, run: Run, report: Report) -> Sequence[Choices]:
        """Returns the program as it is, and with the fastest tile of every dispatch that gains."""
        subjects = {subject.name: subject for subject in self._found()}
        chosen: dict[str, TileSizes] = {}
        for name in run.subjects:
            # The fastest tile of a dispatch, if it gains enough.
            fastest = next((m for m in run.fastest(name) if m.candidate), None)
            if fastest and fastest.outcome.ratio < 1 - _GAIN:
                chosen[name] = subjects[name].read(fastest.candidate)
        if not chosen:
            self._reason = (
                "no tile is faster than the compiler's choice"
                if run.subjects
                else "none of its dispatches has tiles to set; the report says why"
            )
            return ()
        report("compiling the program with the spec")
        try:
            lost = unreached(self._program, self._dispatches(), chosen)
        except CompileError as error:
            raise ProgramError(f"the spec does not compile: {error}") from error
        self._left |= dict.fromkeys(lost, _UNREACHED)
        reached = {name: tile for name, tile in chosen.items() if name not in lost}
        if not reached:
            self._reason = "a spec reaches none of the dispatches that gain"
            return ()
        self._reason = "the whole program is not faster with the tiles"
        return [{}, reached]

    def reason(self) -> str:
        """Says why the program is not faster."""
        return self._reason

    def write(self, run: Run, folder: Path) -> None:
        """Writes the tuning spec, if the program is faster with it."""
        winner = run.winner.candidate if run.winner else {}
        path = folder / SPEC_FILE
        if winner and not path.exists():
            choices = self.whole.read(winner)
            write_atomically(path, tuning_spec(self._dispatches(), choices).encode())

    def use(self, run: Run, folder: Path) -> str:
        """Says how to compile with the spec."""
        path = folder / SPEC_FILE
        command = f"iree-compile --iree-codegen-tuning-spec-path={path} ..."
        return f"use it: {command}" if path.exists() else ""
