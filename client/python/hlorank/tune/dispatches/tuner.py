"""Tunes the dispatches of a program: predicts, compiles, measures, and checks the whole program."""

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import numpy as np

from hlorank.errors import HlorankError
from hlorank.iree.compile_worker import Compiler
from hlorank.iree.compiler import STABLEHLO_FLAGS, CompileError
from hlorank.iree.dispatch import find_dispatches, with_tile
from hlorank.iree.harness import harness
from hlorank.iree.measure import Measured, measure_modules, measuring_worker
from hlorank.iree.runtime import DispatchSubject, ProgramSubject
from hlorank.iree.spec import applied, missing, tuning_spec
from hlorank.iree.tiles import TileSizes
from hlorank.measure.atomic_files import write_atomically
from hlorank.measure.rounds import Protocol
from hlorank.measure.workers import Worker, WorkerError
from hlorank.tune.dispatches.kernel import Kernel, TileOutcome, TilePredictor, proposals
from hlorank.tune.dispatches.run import TileRun, TuneError, outcome_of, row_of
from hlorank.tune.dispatches.settings import TileSettings
from hlorank.tune.dispatches.subject import StablehloProgram
from hlorank.tune.dispatches.whole_program import CONFIRM, program_modules
from hlorank.tune.journal import Journal

SEARCH = Protocol(warmups=1, rounds=6, most_rounds=40, seconds=0.2, tries=20)
"""Protocol of the measurements of tiles."""
_SMALL = 0.005
"""Share of the time of all dispatches below which one is left alone."""
_GAIN = 0.02
"""Smallest gain of a tile that is taken into the spec."""
_SEARCH_SHARE = 0.8
"""Share of the time limit for the search; the rest is for the whole program."""
_ROUNDS = 4
"""Rounds in which the tiles that the model puts first are compiled, until one does."""
_UNREACHED = "a tuning spec does not reach it"
SPEC_FILE = "spec.mlir"


Listener = Callable[[str, TileRun], None]
"""Called with the phase and the state after every change."""


class TileTuner:
    """Searches the tiles of every dispatch of a program, then checks the whole program."""

    def __init__(
        self,
        program: StablehloProgram,
        predictor: TilePredictor | None,
        settings: TileSettings,
        journal: Journal,
        listener: Listener = lambda *_: None,
    ):
        self._program, self._predictor, self._settings = program, predictor, settings
        self._journal, self._listener = journal, listener
        self._spec_path = journal.folder / SPEC_FILE
        self._random = np.random.default_rng(settings.seed)
        self._begin = time.monotonic()
        self._earlier = max((row.get("seconds", 0.0) for row in journal.rows), default=0.0)
        self._run = TileRun(program.name)

    def run(self, measure: bool = True) -> TileRun:
        """Searches until a limit is reached.

        Without ``measure``, the tiles of the spec are those that the model puts first.

        Raises:
            TuneError: if IREE cannot compile the program, or it does not run.
        """
        with ExitStack() as stack:
            self._worker = stack.enter_context(measuring_worker())
            self._compilers = [
                Compiler(stack.enter_context(Worker("hlorank.iree.compile_worker")))
                for _ in range(max(1, len(os.sched_getaffinity(0))))
            ]
            self._find_dispatches()
            if measure:
                self._measure_defaults()
                self._search()
                self._report()
                self._choose()
                self._check_program()
            else:
                self._predict()
        self._listener("", self._run)
        return self._run

    def _find_dispatches(self) -> None:
        self._phase("finding the dispatches")
        try:
            found = find_dispatches(self._program.text, STABLEHLO_FLAGS)
        except CompileError as error:
            raise TuneError(f"IREE cannot compile '{self._program.name}': {error}") from error
        if not found:
            raise TuneError(self._nothing_to_tune())
        for dispatch in found:
            if dispatch.space is None:
                self._run.left.append((dispatch.name, dispatch.untunable))
            else:
                self._run.kernels.append(Kernel.of(dispatch))
        self._leave_unreached()
        for row in self._journal.rows:
            self._restore(row)
        seen = [kernel for kernel in self._run.kernels if kernel.graph is not None]
        if self._predictor is not None and seen:
            self._predictor.check(seen[0])
            for kernel in seen:
                self._predictor.learn(kernel, kernel.outcomes)

    def _nothing_to_tune(self) -> str:
        """Says why a program has no dispatches."""
        name = f"IREE makes no dispatches of '{self._program.name}'"
        if not self._program.arguments:
            return (
                f"{name}: its function main has no arguments, so that IREE computes all of it "
                "while it compiles; pass what varies as arguments of main"
            )
        return (
            f"{name}: nothing that it computes depends on its arguments, so that IREE computes it "
            "while it compiles, or only copies them"
        )

    def _leave_unreached(self) -> None:
        """Leaves alone the dispatches whose root IREE rewrites after it reads a spec."""
        random, path = np.random.default_rng(0), self._spec_path.with_suffix(".probe.mlir")
        by_name = {kernel.dispatch.name: kernel.dispatch for kernel in self._run.kernels}
        drawn = {name: dispatch.space.draw(random, 1) for name, dispatch in by_name.items()}
        tiles = {name: tiles[0] for name, tiles in drawn.items() if tiles}
        write_atomically(
            path, tuning_spec([(by_name[name], tile) for name, tile in tiles.items()]).encode()
        )
        try:
            lost = missing(tiles, applied(self._program.text, str(path), STABLEHLO_FLAGS))
        except CompileError:
            lost = []  # A tile is refused; the spec of the fastest tiles is checked later.
        finally:
            path.unlink()
        self._run.kernels = [k for k in self._run.kernels if k.dispatch.name not in lost]
        self._run.left += [(name, _UNREACHED) for name in lost]

    def _restore(self, row: dict[str, Any]) -> None:
        """Adds a row of the search before it was stopped."""
        for kernel in self._run.kernels:
            if row.get("dispatch") == kernel.dispatch.name:
                kernel.add(outcome_of(row))

    def _measure_defaults(self) -> None:
        for kernel in self._run.kernels:
            if kernel.default is None and not self._is_late():
                self._measure(kernel, [])
        self._run.kernels.sort(key=lambda kernel: -kernel.seconds)
        total = sum(kernel.seconds for kernel in self._run.kernels)
        for kernel in [k for k in self._run.kernels if k.seconds < _SMALL * total]:
            self._run.kernels.remove(kernel)
            self._run.left.append((kernel.dispatch.name, "too short to matter"))

    def _search(self) -> None:
        """Measures tiles in rounds over all dispatches, the longest first."""
        for begin in range(0, self._settings.measurements, self._settings.top_k):
            for kernel in self._run.kernels:
                count = min(self._settings.top_k, self._settings.measurements - begin)
                if len(kernel.outcomes) <= begin and not self._is_late():
                    self._phase(f"predicting tiles of {kernel.dispatch.name}")
                    self._measure(kernel, self._proposals(kernel, count))

    def _report(self) -> None:
        if self._predictor is not None:
            self._predictor.finish()

    def _proposals(self, kernel: Kernel, count: int) -> list[tuple[TileSizes, float | None]]:
        arguments = self._random, count, self._settings.predictions
        try:
            return proposals(kernel, self._predictor, *arguments)
        except HlorankError as error:
            # Goes on without the model, since there is a result all the same.
            self._run.errors.append(str(error))
            return proposals(kernel, None, *arguments)

    def _measure(self, kernel: Kernel, tiles: list[tuple[TileSizes, float | None]]) -> None:
        """Measures tiles in the same rounds as the compiler's choice."""
        dispatch = kernel.dispatch
        self._phase(f"compiling {dispatch.name}")
        texts = [dispatch.configured, *(with_tile(dispatch, tile) for tile, _ in tiles)]
        modules = self._compiled([harness(dispatch, text) for text in texts])
        if not isinstance(modules[0], bytes):
            raise TuneError(f"{dispatch.name} does not compile alone: {modules[0]}")
        self._phase(f"measuring {dispatch.name}")
        measured = self._measured(DispatchSubject(dispatch.bindings), modules, SEARCH)
        times = measured.nanoseconds
        if kernel.default is None:
            self._add(kernel, TileOutcome(None, times[0], times[0]))
        for i, (tile, score) in enumerate(tiles, 1):
            error = measured.errors[i]
            works = not error and np.isfinite(times[i])
            nanoseconds = float(times[i]) if works else None
            refused = measured.failures[i] or getattr(modules[i], "failure", None)
            failure = None if works else refused
            outcome = TileOutcome(tile, nanoseconds, float(times[0]), error, score, failure)
            self._add(kernel, outcome)
        if self._predictor is not None and tiles:
            self._predictor.learn(kernel, kernel.outcomes[-len(tiles) :])

    def _measured(self, subject: Any, modules: Sequence[Any], protocol: Protocol) -> Measured:
        left = self._left()
        if left is not None:
            stretches = max(1, int(left / (2 * protocol.stretch_seconds)))
            protocol = replace(protocol, tries=min(protocol.tries, stretches))
        try:
            given = [m if isinstance(m, bytes) else str(m) for m in modules]
            return measure_modules(self._worker, subject, given, protocol)
        except WorkerError as error:
            raise TuneError(f"'{self._program.name}' does not run: it {error}") from error

    def _compiled(self, texts: Sequence[str]) -> list[bytes | CompileError]:
        """Compiles on all processors; returns the errors of those that do not compile."""
        count = len(self._compilers)
        shares = [list(range(i, len(texts), count)) for i in range(count)]
        modules: list[bytes | CompileError] = [b""] * len(texts)

        def compile_share(compiler: Compiler, share: list[int]) -> None:
            for i in share:
                try:
                    modules[i] = compiler.compile(texts[i])
                except CompileError as error:
                    modules[i] = error

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(compile_share, self._compilers, shares))
        return modules

    def _add(self, kernel: Kernel, outcome: TileOutcome) -> None:
        kernel.add(outcome)
        seconds = round(self._spent(), 1)
        self._journal.write(row_of(kernel.dispatch, outcome) | {"seconds": seconds})
        self._listener("", self._run)

    def _choose(self) -> None:
        """Takes the fastest tile of every dispatch that gains."""
        for kernel in self._run.kernels:
            best = kernel.best
            if best is not None and best.tile is not None and best.ratio < 1 - _GAIN:
                self._run.chosen[kernel.dispatch.name] = best.tile

    def _check_program(self) -> None:
        """Measures the whole program with the spec; keeps the spec only if it is faster."""
        run, done = self._run, [row for row in self._journal.rows if "whole" in row]
        if done:
            self._leave(done[-1]["whole"].get("lost", []))
            self._take_whole(done[-1]["whole"])
            return
        if not run.chosen:
            run.message = (
                "no tile is faster than the compiler's choice"
                if run.kernels
                else "none of its dispatches has tiles to set; the report says why"
            )
            return
        self._phase("compiling the program with the spec")
        self._write_spec()
        try:
            found = applied(self._program.text, str(self._spec_path), STABLEHLO_FLAGS)
            lost = missing(run.chosen, found)
            self._leave(lost)
            if not run.chosen:
                run.message = "a spec reaches none of the dispatches that gain"
                self._spec_path.unlink()
                return
            self._write_spec()
            modules = program_modules(self._program, [None, self._spec_path])
        except CompileError as error:
            raise TuneError(f"the spec does not compile: {error}") from error
        self._phase("confirming: the program without and with the spec")
        measured = self._measured(ProgramSubject(self._program.arguments), modules, CONFIRM)
        whole = {
            "nanoseconds": measured.nanoseconds.tolist(),
            "passes": [measured.first.tolist(), measured.second.tolist()],
            "message": measured.errors[1],
            "lost": lost,
        }
        self._journal.write({"whole": whole, "seconds": round(self._spent(), 1)})
        self._take_whole(whole)

    def _leave(self, lost: Sequence[str]) -> None:
        """Removes the tiles of dispatches that IREE rewrites after it reads the spec."""
        for name in lost:
            del self._run.chosen[name]
            self._run.left.append((name, _UNREACHED))

    def _take_whole(self, whole: dict[str, Any]) -> None:
        run, passes = self._run, np.array(whole["passes"])
        run.default, run.tuned = whole["nanoseconds"]
        run.noise = float(np.nanmax(np.abs(passes[0] - passes[1]) / passes.min(0)))
        if whole["message"]:
            run.message = f"the program with the spec is wrong: {whole['message']}"
        elif run.tuned >= run.default * (1 - run.noise):
            run.message = "the whole program is not faster with the tiles"
        else:
            run.spec = str(self._spec_path)
            return
        self._spec_path.unlink(missing_ok=True)

    def _write_spec(self) -> None:
        by_name = {kernel.dispatch.name: kernel.dispatch for kernel in self._run.kernels}
        text = tuning_spec([(by_name[name], tile) for name, tile in self._run.chosen.items()])
        write_atomically(self._spec_path, text.encode())

    def _predict(self) -> None:
        """Takes the tile that the model puts first, for every dispatch."""
        assert self._predictor is not None
        for kernel in self._run.kernels:
            if kernel.graph is None:
                self._run.left.append((kernel.dispatch.name, kernel.message))
                continue
            self._phase(f"predicting tiles of {kernel.dispatch.name}")
            space = kernel.dispatch.space
            assert space is not None
            tiles = [space.default, *space.draw(self._random, self._settings.predictions)]
            ordered = self._predictor.order(kernel, tiles, 1)
            best = self._first_that_compiles(kernel, [tile for tile, _ in ordered])
            if best is not None:
                self._run.chosen[kernel.dispatch.name] = best
        if not self._run.chosen:
            self._run.message = (
                "IREE compiles none of the tiles that the model puts first"
                if any(kernel.graph is not None for kernel in self._run.kernels)
                else "none of its dispatches has tiles that the model ranks; the report says why"
            )
            return
        self._write_spec()
        self._run.spec = str(self._spec_path)

    def _first_that_compiles(self, kernel: Kernel, tiles: list[TileSizes]) -> TileSizes | None:
        """Returns the first tile that compiles; None if several rounds of them do not."""
        self._phase(f"compiling {kernel.dispatch.name}")
        count = len(self._compilers)
        for begin in range(0, _ROUNDS * count, count):
            some = tiles[begin : begin + count]
            texts = [with_tile(kernel.dispatch, tile) for tile in some]
            modules = self._compiled([harness(kernel.dispatch, text) for text in texts])
            for tile, module in zip(some, modules, strict=True):
                if isinstance(module, bytes):
                    return tile
        return None

    def _is_late(self) -> bool:
        left = self._left()
        return left is not None and left <= 0

    def _spent(self) -> float:
        return self._earlier + time.monotonic() - self._begin

    def _left(self) -> float | None:
        """Returns the seconds that the search may still take; None without a limit."""
        limit = self._settings.seconds
        return None if limit is None else max(0.0, _SEARCH_SHARE * limit - self._spent())

    def _phase(self, description: str) -> None:
        self._listener(description, self._run)
