"""Repeats a function while a search waits for a compiler, a server or a measurement."""

from collections.abc import Callable
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Self

SECONDS = 0.5
"""How often the function is called, which disturbs no measurement: those run in processes."""


class Heartbeat:
    """Calls a function from a thread, as long as the context lasts.

    The function is called with ``lock`` held, as is everything that changes what it reads.
    """

    def __init__(self, beat: Callable[[], None]):
        self._beat = beat
        self.lock, self._end = Lock(), Event()
        self._thread = Thread(target=self._repeat, daemon=True)

    def _repeat(self) -> None:
        while not self._end.wait(SECONDS):
            with self.lock:
                self._beat()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end.set()
        self._thread.join()
