"""A process that compiles modules."""

from multiprocessing.connection import Connection

from hlorank_tune.iree.compiler import CONFIGURATIONS, CompileError, compile_text
from hlorank_tune.measure.workers import Worker, WorkerError

SECONDS = 20.0
"""How long one tile may compile by default; most take a fifth of a second."""


class Compiler:
    """Compiles configured executables in a process of its own."""

    def __init__(self, worker: Worker, seconds: float = SECONDS):
        self._worker = worker
        self._seconds = seconds

    def compile(self, text: str) -> bytes:
        """Compiles a module at phase ``executable-configurations``.

        Raises:
            CompileError: if the compiler refuses it, crashes or takes too long.
        """
        try:
            self._worker.send(text)
            module = self._worker.receive(self._seconds)
        except WorkerError as error:
            refused = CompileError(f"the compiler {error}")
            refused.failure = error.failure and "compile"
            raise refused from error
        if isinstance(module, str):
            raise CompileError(module)
        return module


def serve(connection: Connection, text: str) -> None:
    """Answers one request: the compiled module, or the reason why there is none."""
    try:
        connection.send(compile_text(text, begin=CONFIGURATIONS))
    except CompileError as error:
        connection.send(str(error))
