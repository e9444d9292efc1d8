"""Runs Envoy and HAProxy with the shipped configurations, in front of local servers."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from replicas import PATIENCE, TARGET, Replica, answer, free_ports, wait_for
from sources import DEPLOY

FOLDER = Path(os.environ.get("HLORANK_PROXIES", TARGET / "proxies"))
# Libraries of HAProxy, if the machine lacks them.
ENVIRONMENT = {"LD_LIBRARY_PATH": str(FOLDER / "lib")}


@dataclass(frozen=True)
class Kind:
    """A proxy, and how its configuration writes addresses."""

    name: str
    configuration: Path
    run: tuple[str, ...]
    """Options before the name of the configuration."""
    check: tuple[str, ...]
    address: str
    """Format of the address of a listener, with host and port."""
    replica: str
    """Format of the address of a replica, with its ports for calls and metrics."""
    statistics: int
    """Loopback port of the statistics."""
    statistics_path: str

    def command(self, options: Sequence[str], configuration: Path) -> list[str]:
        """Returns the command line; skips the test if the program is missing."""
        program = FOLDER / self.name
        if not program.exists():
            pytest.skip(f"{self.name} is missing: make setup-proxies")
        return [str(program), *options, str(configuration)]

    def judge(self, configuration: Path) -> subprocess.CompletedProcess:
        """Lets the proxy check a configuration."""
        command = self.command(self.check, configuration)
        return subprocess.run(
            command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    def before(self, replicas: Sequence[Replica], port: int, statistics: int) -> str:
        """Returns the shipped configuration with local addresses."""
        here, anywhere = "127.0.0.1", "0.0.0.0"
        changes = {
            self.address.format(anywhere, 7070): self.address.format(here, port),
            self.address.format(here, self.statistics): self.address.format(here, statistics),
        }
        for number, replica in enumerate(replicas, 1):
            theirs = self.replica.format(f"10.0.0.{number}", 7070, 7071)
            changes[theirs] = self.replica.format(here, replica.port, replica.metrics_port)
        text = self.configuration.read_text()
        for theirs, ours in changes.items():
            assert text.count(theirs) == 1, f"{theirs} in {self.configuration}"
            text = text.replace(theirs, ours)
        return text


ENVOY = Kind(
    name="envoy",
    configuration=DEPLOY / "envoy/envoy.yaml",
    run=("--concurrency", "2", "--use-dynamic-base-id", "--log-level", "warning", "--config-path"),
    check=("--mode", "validate", "--config-path"),
    address="address: {}, port_value: {} ",
    replica="address: {}, port_value: {} ",
    statistics=9901,
    statistics_path="/stats/prometheus",
)
HAPROXY = Kind(
    name="haproxy",
    configuration=DEPLOY / "haproxy/haproxy.cfg",
    run=("-f",),
    check=("-c", "-f"),
    address="bind {}:{}",
    replica="{}:{} check port {} ",
    statistics=8404,
    statistics_path="/metrics",
)
KINDS = {kind.name: kind for kind in (ENVOY, HAPROXY)}


@dataclass(frozen=True)
class Proxy:
    """A running proxy."""

    kind: Kind
    process: subprocess.Popen
    address: str
    """Where the proxy accepts calls."""


@contextmanager
def proxy_before(kind: Kind, replicas: Sequence[Replica], folder: Path) -> Iterator[Proxy]:
    """Runs a proxy in front of these replicas with the shipped configuration."""
    port, statistics = free_ports(2)
    configuration = folder / kind.configuration.name
    configuration.write_text(kind.before(replicas, port, statistics))
    command, log = kind.command(kind.run, configuration), folder / f"{kind.name}.log"
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=ENVIRONMENT, stdout=output, stderr=output) as process,
    ):

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            return answer(f"http://127.0.0.1:{statistics}{kind.statistics_path}") is not None

        try:
            wait_for(kind.name, answers)
            yield Proxy(kind, process, f"127.0.0.1:{port}")
        finally:
            process.kill()
