"""The progress display of a search for tiles."""

from time import monotonic
from typing import Any, Self

from rich.console import Console

from hlorank.tune.dispatches.kernel import Kernel
from hlorank.tune.dispatches.run import TileRun
from hlorank.tune.duration import duration
from hlorank.tune.heartbeat import Heartbeat

_QUIET_SECONDS = 8.0


class TileLines:
    """Prints a line for every measured batch; shows the phase in between.

    Without a terminal, the phase is printed if nothing else was for eight seconds.
    """

    def __init__(self, console: Console):
        self._console = console
        self._status = console.status("starting") if console.is_terminal else None
        self._phase, self._printed = "starting", {}
        self._begin = self._last = monotonic()
        self._heartbeat = Heartbeat(self._beat)

    def __call__(self, phase: str, run: TileRun) -> None:
        """Shows the state of a run."""
        with self._heartbeat.lock:
            if phase:
                self._phase = phase
                for kernel in run.kernels:
                    self._show(kernel)

    def _show(self, kernel: Kernel) -> None:
        count, name = len(kernel.outcomes), kernel.dispatch.name
        if not count or self._printed.get(name) == count:
            return
        self._printed[name] = count
        best = kernel.best
        found = f"{best.ratio:6.3f}" if best else "  none"
        self._print(
            f"{duration(kernel.default):>9}  best {found} of IREE's  {count:>3} tiles  {name}"
        )

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)
        self._last = monotonic()

    def _beat(self) -> None:
        text = f"{self._phase} ({monotonic() - self._begin:.0f} s)"
        if self._status is not None:
            self._status.update(text)
        elif monotonic() - self._last >= _QUIET_SECONDS:
            self._print(f"      ...  {text}")

    def __enter__(self) -> Self:
        if self._status is not None:
            self._status.start()
        self._heartbeat.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._heartbeat.stop()
        if self._status is not None:
            self._status.stop()
