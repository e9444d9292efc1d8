"""Repeats a function while a search waits for a compiler, a server or a measurement."""

from collections.abc import Callable
from threading import Event, Lock, Thread

SECONDS = 0.5
"""How often the function is called, which disturbs no measurement: those run in processes."""


class Heartbeat:
    """Calls a function from a thread, from ``start`` to ``stop``.

    The function is called with ``lock`` held, as is everything that changes what it reads.
    """

    def __init__(self, beat: Callable[[], None]):
        self._beat = beat
        self.lock = Lock()
        self._end = Event()
        self._thread = Thread(target=self._repeat, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the thread, and waits for it."""
        self._end.set()
        self._thread.join()

    def _repeat(self) -> None:
        while not self._end.wait(SECONDS):
            with self.lock:
                self._beat()
