"""Halide as a compiler of the tuner: schedules that its autoscheduler draws for a pipeline."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hlorank.halide.drawing import GREEDY, draws_after_greedy
from hlorank.halide.messages import Compiled, Failed, Searched
from hlorank.halide.schedule import Draw, Schedule
from hlorank.halide.schedules import PROTOCOL, WORKER, ScheduleError, Schedules
from hlorank.measure.atomic_files import write_atomically
from hlorank.measure.rounds import Protocol
from hlorank.measure.workers import Worker
from hlorank.search import default_target
from hlorank.tune.compiler import Compiler, Report
from hlorank.tune.halide.pipelines import TunedPipeline
from hlorank.tune.halide.ranking import graph_of
from hlorank.tune.outcome import MEASURED, Outcome, failed
from hlorank.tune.run import Measurement, Run
from hlorank.tune.settings import Settings
from hlorank.tune.subject import Subject

SCHEDULE_FILE = "schedule.h"
_COMPILE_SECONDS = 120.0
"""How long compiling a schedule, and its first runs, may take."""
_GREEDY_SECONDS = 600.0
"""How long the greedy draw may take."""
_DRAW_SECONDS = 30.0
"""How long another draw may take; more if the greedy one takes long itself."""
_LONGER = 5.0
"""Another draw may take this many times as long as the greedy one."""
_BEAM_SECONDS = 8.0
"""A wider beam is only drawn if it is expected to take less."""
_SLOWER = 10.0
"""A schedule that takes this many times as long as the greedy one is not measured."""
_SLOWEST = 0.1
_SLOWEST_GREEDY = 60.0
"""Seconds of a run that are always accepted, and those that the greedy schedule may take."""


class HalideCompiler(Compiler[Draw]):
    """Halide with a pipeline, which a process draws schedules of, compiles and measures."""

    task = "schedule"
    strategies = ("drawn",)
    reference = "the greedy schedule"
    parts = 0
    search = PROTOCOL
    confirm = PROTOCOL
    whole: TunedPipeline

    def __init__(self, name: str, build: Callable[[], Any]):
        """Tunes a pipeline of this name.

        ``build`` returns a new ``hlorank.halide.pipeline.Pipeline`` at every call. It is called in
        another process, so it must be picklable: a ``PipelineFunction``, or a function of a module.
        """
        self.program = name
        self.whole = TunedPipeline(self._draw_all, self._schedule)
        self._build = build
        self._worker = Worker(WORKER)
        self._schedules: Schedules | None = None
        self._report: Report = lambda _: None
        self._drawn: dict[Draw, Schedule] = {}
        self._failed: dict[Draw, str] = {}
        self._repeats = 0
        self._greedy_seconds = 0.0
        self._slowest = _SLOWEST_GREEDY
        self._compiled: list[Draw] = []
        self._problems: dict[Draw, Outcome] = {}

    @classmethod
    def settings(cls) -> Settings:
        """Returns the settings: the first 5 of 32 draws beside the greedy one, in one round."""
        return Settings(cls.strategies[0], measurements=5, predictions=32, top_k=5)

    def close(self) -> None:
        """Ends the process."""
        self._worker.close()

    def identity(self) -> dict[str, Any]:
        """Returns where the pipeline comes from, and the version of Halide."""
        place = _place(self._build)
        # A script that was edited describes another pipeline under the same name.
        digest = sha256(place.encode())
        script = Path(place.rpartition(":")[0])
        if script.is_file():
            digest.update(script.read_bytes())
        return {
            "compiler": f"halide {version('halide')}",
            "pipeline": place,
            "identity": digest.hexdigest(),
        }

    def target(self) -> str:
        """Names the target of Halide's schedules on this machine, which run on one thread."""
        return default_target(f"Halide {version('halide')}")

    def subjects(self, report: Report) -> Sequence[TunedPipeline]:
        """Returns the pipeline, whose graph is that of the greedy schedule.

        Raises:
            ScheduleError: if the pipeline cannot be built.
        """
        self._report = report
        report("drawing: the greedy schedule")
        searched = self._draw(GREEDY, _GREEDY_SECONDS)
        self._greedy_seconds = searched.seconds if searched else 0.0
        if searched is None:
            # Any schedule has the graph of the pipeline, which the model needs.
            self._draw_all(2)
        first = next(iter(self._drawn.values()), None)
        self.whole.graph = graph_of(first) if first is not None else None
        return [self.whole]

    def _draw_all(self, count: int) -> Sequence[Draw]:
        """Draws schedules after the greedy one; returns the distinct ones that work."""
        after = draws_after_greedy(count - 1, self._greedy_seconds, _BEAM_SECONDS)
        longest = max(_DRAW_SECONDS, _LONGER * self._greedy_seconds)
        for number, draw in enumerate(after, 1):
            self._report(f"drawing: {number} of {count} done")
            if draw not in self._drawn and draw not in self._failed:
                self._draw(draw, longest)
        distinct: dict[str, Draw] = {}
        for draw, schedule in self._drawn.items():
            distinct.setdefault(schedule.digest, draw)
        self._repeats = len(self._drawn) - len(distinct)
        return list(distinct.values())

    def _draw(self, draw: Draw, seconds: float) -> Searched | None:
        searched = self._process().search(draw, seconds)
        if isinstance(searched, Failed):
            self._failed[draw] = searched.message
            return None
        self._drawn[draw] = searched.schedule
        return searched

    def _schedule(self, draw: Draw) -> Schedule:
        """Returns the schedule of a draw, which is always the same."""
        if draw not in self._drawn and self._draw(draw, _GREEDY_SECONDS) is None:
            raise ScheduleError(f"{draw_text(draw)}: {self._failed[draw]}")
        return self._drawn[draw]

    def _process(self) -> Schedules:
        if self._schedules is None:
            self._schedules = Schedules(self._worker, self._build, _COMPILE_SECONDS)
        return self._schedules

    def left_alone(self) -> Mapping[str, str]:
        """Returns the draws that failed, and how many repeated others."""
        failures = {draw_text(draw): message for draw, message in self._failed.items()}
        repeats = f"{self._repeats} draws"
        return failures | ({repeats: "repeat an earlier schedule"} if self._repeats else {})

    def counts(self, measurement: Measurement) -> bool:
        """Returns whether a schedule works: the next one takes the place of one that fails."""
        return bool(measurement.candidate and measurement.outcome.nanoseconds)

    def measure(
        self,
        subject: Subject[Draw],
        candidates: Sequence[Draw],
        protocol: Protocol,
        seconds: float,
        report: Report,
    ) -> list[Outcome]:
        """Compiles schedules, and measures all that work in the same rounds as the greedy one."""
        for number, draw in enumerate(dict.fromkeys([GREEDY, *candidates])):
            report(f"compiling: {number} of {len(candidates)} done")
            self._compile(draw)
        times: dict[Draw, int] = {}
        noise = 0.0
        # All that was compiled before runs in these rounds again, so that times are comparable.
        if any(draw in self._compiled for draw in candidates):
            report("measuring")
            timing = self._process().measure(protocol)
            times = dict(zip(self._compiled, timing.label().tolist(), strict=True))
            noise = timing.noise()
        greedy = times.get(GREEDY)
        return [
            Outcome(MEASURED, times[draw], greedy, noise) if draw in times else self._problems[draw]
            for draw in candidates
        ]

    def _compile(self, draw: Draw) -> None:
        if draw in self._compiled or draw in self._problems:
            return
        if draw in self._failed:
            self._problems[draw] = Outcome("draw failed", message=self._failed[draw])
            return
        answer = self._process().compile(draw, self._slowest)
        if isinstance(answer, Compiled):
            self._compiled.append(draw)
            if draw == GREEDY:
                self._slowest = max(_SLOWEST, _SLOWER * answer.run_seconds)
        else:
            self._problems[draw] = failed(answer.message, answer.failure)

    def write(self, run: Run, folder: Path) -> None:
        """Writes the fastest schedule as C++, also if it is the greedy one."""
        path = folder / SCHEDULE_FILE
        if run.winner is None or run.winner.outcome.nanoseconds is None or path.exists():
            return
        source = self._schedule(self.whole.read(run.winner.candidate)).source
        comment = f"// {run}\n// For a Halide::Pipeline named pipeline, and one thread.\n"
        write_atomically(path, (comment + source).encode())

    def use(self, run: Run, folder: Path) -> str:
        """Says how to use the fastest schedule; empty if none works."""
        path = folder / SCHEDULE_FILE
        if run.winner is None or not path.exists():
            return ""
        draw = self.whole.read(run.winner.candidate)
        changed = {name: value for name, value in asdict(draw).items() if name != "number"}
        given = [f"{k}={v}" for k, v in changed.items() if v != getattr(Draw(0), k)]
        text = ", ".join([str(draw.number), *given])
        return (
            f"use it: {path} in C++, in Python "
            f"hlorank.halide.adams2019.apply_schedule(pipeline, Draw({text}))"
        )


def _place(build: Callable[[], Any]) -> str:
    """Says where a pipeline comes from, alike in every process."""
    if hasattr(build, "place"):
        return str(build)
    module = getattr(build, "__module__", "")
    name = getattr(build, "__qualname__", "")
    return f"{module}:{name}" if name else type(build).__qualname__


def draw_text(draw: Draw) -> str:
    """Returns how a schedule was drawn."""
    parts = [
        f"beam {draw.beam}" if draw.beam > 1 else "",
        f"noise {draw.noise:g}" if draw.noise else "",
        f"{draw.keep} % of choices" if draw.keep < 100 else "",
    ]
    return f"draw {draw.number}: " + (", ".join(filter(None, parts)) or "greedy")
