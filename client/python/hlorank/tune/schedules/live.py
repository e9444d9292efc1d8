"""The progress of a search for schedules."""

from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn


class StepBars:
    """A bar for every step; without a terminal, a line when a step begins."""

    def __init__(self, console: Console):
        self._console, self._is_live = console, console.is_terminal
        columns = (TextColumn("{task.description:<9}"), BarColumn(), MofNCompleteColumn())
        self._progress = Progress(*columns, TimeElapsedColumn(), console=console)
        self._tasks: dict[str, Any] = {}

    def __call__(self, step: str, done: int, total: int) -> None:
        """Shows how much of a step is done."""
        if step not in self._tasks:
            self._tasks[step] = self._progress.add_task(step, total=total)
            if not self._is_live:
                self._console.print(f"{step} ...", highlight=False)
        self._progress.update(self._tasks[step], completed=done)

    def __enter__(self) -> Self:
        if self._is_live:
            self._progress.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._is_live:
            self._progress.stop()
