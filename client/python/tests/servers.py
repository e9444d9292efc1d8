"""A real server for the tests that need one; the tests of the tuner use this module, too."""

import hashlib
import json
import os
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from tls import Certificate

REPOSITORY = Path(__file__).resolve().parents[3]
DATA = REPOSITORY / "tests" / "data"
TARGET = REPOSITORY / "target"

PATIENCE = 60.0
"""Seconds for a start, on a busy machine."""


def server_program() -> Path:
    """The server that was built last; the test is skipped where there is none."""
    built = [TARGET / profile / "hlorank-server" for profile in ("release", "debug")]
    built = [program for program in built if program.exists()]
    if not built:
        pytest.skip("needs hlorank-server: `make build`, or `make test-rust`, builds it")
    return max(built, key=lambda program: program.stat().st_mtime)


def command_line() -> Path:
    """The command line beside that server; the test is skipped where there is none."""
    program = server_program().with_name("hlorank")
    if not program.exists():
        pytest.skip("needs hlorank: `make build`, or `make test-rust`, builds it")
    return program


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    address: str
    process: subprocess.Popen[bytes]

    def kill(self) -> None:
        """Kills it, and waits until it is gone."""
        self.process.kill()
        self.process.wait()


@contextmanager
def run_server(*flags: str) -> Iterator[str]:
    """A server with these flags; gives its address."""
    with run_process(*flags) as server:
        yield server.address


@contextmanager
def run_empty_server(folder: Path, address: str = "127.0.0.1:0") -> Iterator[Server]:
    """A server without models that keeps measurements in a folder; a test may kill it, and start it
    again at its address."""
    kept = f"--measurements={folder / 'measurements'}"
    with run_process(f"--models={folder}", kept, f"--listen={address}") as server:
        yield server


@contextmanager
def run_server_that_keeps_nothing(folder: Path) -> Iterator[str]:
    """A server without a store, about which its client warns once; gives its address."""
    with run_process(f"--models={folder}") as server, said_once("keeps no measurements, so no"):
        yield server.address


@contextmanager
def said_once(words: str = "hlorank") -> Iterator[list[warnings.WarningMessage]]:
    """One warning of ours comes, and has these words; gives all that came."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught
    ours = [str(each.message) for each in caught if "hlorank" in str(each.message)]
    assert len(ours) == 1 and words in ours[0], ours


TOKEN = "a token of this test"


@contextmanager
def run_secured_server(folder: Path) -> Iterator[str]:
    """A server over TLS that asks for a token; ``localhost.crt`` of the folder is its authority."""
    Certificate(folder, "localhost")
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    (folder / "tokens").write_text(f"tests read sha256:{digest}\n")
    files = {"tls-certificate": "localhost.crt", "tls-key": "localhost.key", "tokens": "tokens"}
    with run_server(*(f"--{flag}={folder / name}" for flag, name in files.items())) as address:
        yield address


@contextmanager
def run_process(*flags: str) -> Iterator[Server]:
    """A server with these flags."""
    defaults = {"--listen": "127.0.0.1:0", "--metrics-listen": "off"}
    defaults |= {"--models": str(DATA / "all-models"), "--log-format": "json"}
    library = TARGET / "onnxruntime" / "libonnxruntime.so"
    defaults["--onnxruntime"] = os.environ.get("HLORANK_ONNXRUNTIME", str(library))
    given = {flag.partition("=")[0] for flag in flags}
    arguments = [f"{flag}={value}" for flag, value in defaults.items() if flag not in given]
    command = [server_program(), *arguments, *flags]
    with tempfile.NamedTemporaryFile("w+") as log, subprocess.Popen(command, stderr=log) as server:
        try:
            yield Server(_address(server, Path(log.name)), server)
        finally:
            server.terminate()


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    patience = time.monotonic() + PATIENCE
    while time.monotonic() < patience and server.poll() is None:
        # All but what is being written.
        for line in log.read_text().split("\n")[:-1]:
            fields = json.loads(line)["fields"]
            if fields["message"] == "serving":
                return fields["address"]
        time.sleep(0.02)
    raise RuntimeError(f"hlorank-server did not start: {log.read_text()}")
