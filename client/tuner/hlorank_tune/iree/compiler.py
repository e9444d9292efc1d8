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

    # Closed here, since they refer to each other: the collector of garbage comes too late.
    with ExitStack() as stack:
        session = stack.enter_context(Session())
        _set_flags(session, flags)
        source = Source.wrap_buffer(session, text.encode() + b"\0")
        invocation = stack.enter_context(session.invocation())
        errors = _Errors(invocation)
        _set_phases(invocation, begin, end)
        if not invocation.parse_source(source) or not invocation.execute():
            raise CompileError(errors.summary())
        output = stack.enter_context(Output.open_membuffer())
        try:
            invocation.output_ir(output) if end else invocation.output_vm_bytecode(output)
        except ValueError as error:
            raise CompileError(errors.summary()) from error
        return bytes(output.map_memory())


def _set_flags(session, flags: Sequence[str]) -> None:
    if not any(flag.startswith(SPEC_FLAG) for flag in flags):
        # IREE keeps this flag for the whole process: without a value, an earlier spec applies.
        flags = (*flags, f"{SPEC_FLAG}=")
    try:
        session.set_flags(*flags)
    except ValueError as error:
        raise CompileError(f"IREE {compiler_version()} refuses its flags: {error}") from error


def _set_phases(invocation, begin: str, end: str) -> None:
    for name, phase in (("From", begin), ("To", end)):
        if phase:
            function = getattr(_library(invocation), f"ireeCompilerInvocationSetCompile{name}Phase")
            function.restype = None
            function.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
            function(_pointer(invocation), phase.encode())


class _Errors:
    """Collects the errors that the compiler reports during one invocation."""

    def __init__(self, invocation) -> None:
        self._messages: list[str] = []
        # The library calls this as long as the invocation lives.
        self._callback = _Callback(self._take)
        enable = _library(invocation).ireeCompilerInvocationEnableCallbackDiagnostics
        enable.restype = None
        enable.argtypes = [ctypes.c_void_p, ctypes.c_int, _Callback, ctypes.c_void_p]
        enable(_pointer(invocation), 0, self._callback, None)

    def _take(self, severity: int, text, size: int, _) -> None:
        if severity == _ERROR:
            self._messages.append(ctypes.string_at(text, size).decode(errors="replace"))

    def summary(self) -> str:
        """Returns the first error, without the operations that it quotes."""
        return (
            self._messages[0].splitlines()[0] if self._messages else "the compiler gives no reason"
        )


# The Python interface of the compiler has neither phases nor diagnostics; its C library does.
def _library(invocation):
    return invocation._local_dylib


def _pointer(invocation) -> ctypes.c_void_p:
    return invocation._inv_p


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
