"""Compiles with IREE: whole programs, from one phase to another, and tiles.

A tile may make the compiler crash or hang. Whoever compiles tiles does it in a process of its own.
"""

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from multiprocessing.connection import Connection
from typing import Any

from hlorank import HlorankError
from hlorank_tune.measure.workers import Worker, WorkerError

FLAGS = (
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
)
"""Flags of ``iree-compile`` for the processor at hand."""
STABLEHLO_FLAGS = (*FLAGS, "--iree-input-type=stablehlo")
"""Flags for the text of a StableHLO program."""

SPEC_FLAG = "--iree-codegen-tuning-spec-path"
"""The flag that names a tuning spec."""

SOURCES = "executable-sources"
"""The phase after which the dispatches are formed."""
CONFIGURATIONS = "executable-configurations"
"""The phase after which every dispatch has its tiles."""

_ERROR = 2
"""Severity of an error among the diagnostics of IREE's C interface."""
_Callback = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_void_p
)


class CompileError(HlorankError):
    """IREE cannot compile the program or the tile."""

    failure: str | None = "compile"
    """What that says of a tile, one of ``hlorank.FAILURES``; None for nothing."""


def compiler_version() -> str:
    """Returns the version of the installed compiler, such as ``3.13.0``."""
    return version("iree-base-compiler")


def compile_text(text: str, flags: Sequence[str] = FLAGS, begin: str = "") -> bytes:
    """Compiles MLIR to a module that IREE's runtime loads.

    ``begin`` is the phase that the text has already passed, if any.

    Raises:
        CompileError: with the first errors that the compiler reports.
    """
    return _compile(text, flags, begin, "")


def lower_text(text: str, end: str, flags: Sequence[str] = FLAGS, begin: str = "") -> str:
    """Compiles MLIR up to the end of a phase, and returns its text.

    Raises:
        CompileError: with the first errors that the compiler reports.
    """
    return _compile(text, flags, begin, end).decode()


def _compile(text: str, flags: Sequence[str], begin: str, end: str) -> bytes:
    from iree.compiler.api import Output, Session, Source

    if not any(flag.startswith(SPEC_FLAG) for flag in flags):
        # IREE keeps this flag for the whole process: without a value, an earlier spec applies.
        flags = (*flags, f"{SPEC_FLAG}=")
    messages: list[str] = []

    def take(severity: int, text, size: int, _) -> None:
        if severity == _ERROR:
            messages.append(ctypes.string_at(text, size).decode(errors="replace"))

    def failed() -> CompileError:
        """Returns the first error, without the operations that it quotes."""
        return CompileError(
            messages[0].splitlines()[0] if messages else "the compiler gives no reason"
        )

    # Closed here, since they refer to each other: the collector of garbage comes too late.
    with ExitStack() as stack:
        session = stack.enter_context(Session())
        try:
            session.set_flags(*flags)
        except ValueError as error:
            raise CompileError(f"IREE {compiler_version()} refuses its flags: {error}") from error
        source = Source.wrap_buffer(session, text.encode() + b"\0")
        invocation = stack.enter_context(session.invocation())

        def call(name: str, kinds: list[Any], *values: Any) -> None:
            """Calls the C library: the Python interface has neither phases nor diagnostics."""
            function = getattr(invocation._local_dylib, f"ireeCompilerInvocation{name}")
            function.restype = None
            function.argtypes = [ctypes.c_void_p, *kinds]
            function(invocation._inv_p, *values)

        # The library calls this as long as the invocation lives.
        callback = _Callback(take)
        kinds = [ctypes.c_int, _Callback, ctypes.c_void_p]
        call("EnableCallbackDiagnostics", kinds, 0, callback, None)
        for name, phase in (("From", begin), ("To", end)):
            if phase:
                call(f"SetCompile{name}Phase", [ctypes.c_char_p], phase.encode())
        if not invocation.parse_source(source) or not invocation.execute():
            raise failed()
        output = stack.enter_context(Output.open_membuffer())
        try:
            invocation.output_ir(output) if end else invocation.output_vm_bytecode(output)
        except ValueError as error:
            raise failed() from error
        return bytes(output.map_memory())


SECONDS = 20.0
"""How long one tile may compile by default; most take a fifth of a second."""


class CompileProcess:
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


class Compilers:
    """Processes that compile tiles, one for each processor."""

    def __init__(self, stack: ExitStack):
        """The processes end with ``stack``."""
        self.count = max(1, len(os.sched_getaffinity(0)))
        workers = [Worker("hlorank_tune.iree.compiler") for _ in range(self.count)]
        self._compilers = [CompileProcess(stack.enter_context(worker)) for worker in workers]

    def compiled(self, texts: Sequence[str]) -> list[bytes | CompileError]:
        """Compiles on all processors; returns the errors of those that do not compile."""
        shares = [list(range(i, len(texts), self.count)) for i in range(self.count)]
        modules: list[bytes | CompileError] = [b""] * len(texts)

        def compile_share(compiler: CompileProcess, share: list[int]) -> None:
            for i in share:
                try:
                    modules[i] = compiler.compile(texts[i])
                except CompileError as error:
                    modules[i] = error

        with ThreadPoolExecutor(self.count) as pool:
            list(pool.map(compile_share, self._compilers, shares))
        return modules


def serve(connection: Connection, text: str) -> None:
    """Answers one request: the compiled module, or the reason why there is none."""
    try:
        connection.send(compile_text(text, begin=CONFIGURATIONS))
    except CompileError as error:
        connection.send(str(error))
