"""Runs real servers as replicas, and reads their metrics."""

import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import pytest
from servers import REPOSITORY, TARGET, server_program
from sources import NO_TELEMETRY

PATIENCE = 30.0  # seconds
LIBRARY = TARGET / "onnxruntime/libonnxruntime.so"
# A stream counts until it ends.
MAX_REQUESTS = 16
T = TypeVar("T")


def free_ports(count: int) -> list[int]:
    """Returns free loopback ports."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [listener.getsockname()[1] for listener in listeners]
    for listener in listeners:
        listener.close()
    return ports


def wait_for(what: str, condition: Callable[[], T]) -> T:
    """Waits until a condition returns something true, and returns that."""
    end = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {PATIENCE:g} s for {what}"
        time.sleep(0.02)
    return found


def answer(url: str) -> str | None:
    """Returns the body of an answer, or None if nobody answers with 200."""
    try:
        with urllib.request.urlopen(url, timeout=5) as response:
            return response.read().decode()
    except (urllib.error.URLError, ConnectionError):
        return None


@dataclass
class Replica:
    """A server that can be stopped and started again on its ports."""

    log: Path
    port: int
    metrics_port: int
    variables: dict[str, object]
    process: subprocess.Popen = field(init=False)

    def start(self) -> None:
        """Starts the server and waits until it serves."""
        variables = {
            "HLORANK_LISTEN": f"127.0.0.1:{self.port}",
            "HLORANK_METRICS_LISTEN": f"127.0.0.1:{self.metrics_port}",
            "HLORANK_MODELS": REPOSITORY / "models/registry",
            "HLORANK_ONNXRUNTIME": os.environ.get("HLORANK_ONNXRUNTIME", LIBRARY),
            "HLORANK_WORKERS": 1,
            "HLORANK_GRAPH_CACHE_BYTES": 64 << 20,
            "HLORANK_EMBEDDING_CACHE_BYTES": 64 << 20,
            "HLORANK_MAX_REQUESTS": MAX_REQUESTS,
        }
        variables |= NO_TELEMETRY | self.variables
        environment = {name: str(value) for name, value in variables.items()}
        with self.log.open("a") as log:
            self.process = subprocess.Popen([server_program()], env=environment, stderr=log)
        wait_for(f"a server; its log is {self.log}", self._serves)

    def _serves(self) -> bool:
        assert self.process.poll() is None, self.log.read_text()
        return answer(f"http://127.0.0.1:{self.metrics_port}/readyz") is not None

    def kill_in_the_middle_of_calls(self) -> None:
        """Stops the process, lets calls wait for its answer, and kills it."""
        self.process.send_signal(signal.SIGSTOP)
        time.sleep(0.5)
        self.kill()

    def kill(self) -> None:
        """Kills the process, and waits until it is gone."""
        self.process.kill()
        self.process.wait(PATIENCE)

    def drain(self) -> None:
        """Asks the server to shut down and waits until it has finished its calls."""
        self.process.terminate()
        self.wait_until_drained()

    def wait_until_drained(self) -> None:
        """Waits until the server has shut down; a second signal would end it immediately."""
        assert self.process.wait(PATIENCE) == 0, self.log.read_text()

    def metric(self, name: str, *labels: str) -> float:
        """Returns the sum of a metric's series with these labels, such as ``result="hit"``."""
        text = answer(f"http://127.0.0.1:{self.metrics_port}/metrics") or ""
        series = re.findall(rf"^{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
        assert series, f"{name} is not among the metrics"
        return sum(float(value) for of, value in series if set(labels) <= set(of.split(",")))

    def ranked(self) -> float:
        """Returns the number of RankConfigs calls that were answered."""
        return self.metric("hlorank_requests_total", 'method="RankConfigs"', 'code="OK"')


@contextmanager
def running(count: int, folder: Path, **variables: object) -> Iterator[list[Replica]]:
    """Runs servers with these variables, which are killed in the end; logs are in the folder."""
    if not LIBRARY.exists() and "HLORANK_ONNXRUNTIME" not in os.environ:
        pytest.skip("ONNX Runtime is missing: make setup")
    ports = free_ports(2 * count)
    replicas = [
        Replica(folder / f"server-{port}.log", port, metrics, variables)
        for port, metrics in zip(ports[:count], ports[count:], strict=True)
    ]
    started: list[Replica] = []
    try:
        for replica in replicas:
            replica.start()
            started.append(replica)
        yield replicas
    finally:
        for replica in started:
            replica.kill()


def graph_cache_requests(replicas: Sequence[Replica]) -> Counter[tuple[str, str]]:
    """Counts graph lookups by index (by hash, or by what was sent) and result."""
    found: Counter[tuple[str, str]] = Counter()
    for replica in replicas:
        for index in ("hash", "source"):
            for result in ("hit", "miss"):
                labels = (f'cache="graphs_by_{index}"', f'result="{result}"')
                found[index, result] += int(replica.metric("hlorank_cache_requests_total", *labels))
    return found
