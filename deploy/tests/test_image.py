"""Tests the Dockerfile, and the image's root file system, run as a container engine does.

The root file system is what ``image/root.sh`` makes of the programs in ``target``. ``make
test-image`` builds the Dockerfile instead, and names the result in IMAGE.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hlorank import Client
from measured import read_graphs
from replicas import free_ports
from servers import REPOSITORY
from sources import (
    DEPLOY,
    NO_TELEMETRY,
    arguments,
    foreign_variables,
    image_environment,
    port,
    server_settings,
)

LIMIT = 120_000_000
USER = "65532"
BUILT = os.environ.get("IMAGE")
"""The folder in which `image/chroot.sh` built the Dockerfile."""
KERNELS = REPOSITORY / "tests/data/measured/tile_kernels.pb"
MODELS = REPOSITORY / "models/registry"
[VERSION] = [f"tile-iree-cpu@{folder.name}" for folder in (MODELS / "tile-iree-cpu").iterdir()]
PATIENCE = 20  # seconds


@dataclass(frozen=True)
class Container:
    """A server running in the image's root file system."""

    process: subprocess.Popen
    root: Path
    programs: Path
    endpoints: dict[str, str]

    def outside(self, *command: str) -> subprocess.CompletedProcess:
        """Runs the command line outside the container."""
        return finish([self.programs / "hlorank", *command], self.endpoints)

    def health_check(self) -> subprocess.CompletedProcess:
        """Runs the image's health check in the container."""
        _, _, command = arguments("HEALTHCHECK")[0].partition("CMD ")
        environment = image_environment() | self.endpoints
        return finish([DEPLOY / "image/run.sh", self.root, *json.loads(command)], environment)

    def status(self, field: str) -> list[str]:
        """Returns a field of the status of the process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return re.search(rf"^{field}:(.*)$", status, re.MULTILINE)[1].split()

    def mounts(self) -> dict[str, list[str]]:
        """Returns the options of every mount that the process sees, by mount point."""
        lines = Path(f"/proc/{self.process.pid}/mountinfo").read_text().splitlines()
        return {line.split()[4]: line.split()[5].split(",") for line in lines}


def finish(command: list, environment: dict[str, str]) -> subprocess.CompletedProcess:
    """Runs a command to its end with this environment and the current PATH only."""
    # run.sh needs the current PATH, and not the image's.
    environment = environment | {"PATH": os.environ["PATH"]}
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture(scope="session")
def programs() -> Path:
    """Returns the folder of the server and the command line: the image's, or those built last."""
    if BUILT:
        return Path(BUILT, "root/usr/bin")
    folders = [REPOSITORY / "target" / profile for profile in ("release", "debug")]
    built = [f for f in folders if (f / "hlorank-server").exists() and (f / "hlorank").exists()]
    if not built:
        pytest.skip("the programs are not built: make build")
    if not (REPOSITORY / "target/onnxruntime/licences/LICENSE").exists():
        pytest.skip("ONNX Runtime is missing: make setup")
    return max(built, key=lambda folder: (folder / "hlorank-server").stat().st_mtime)


@pytest.fixture(scope="session")
def root(programs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Builds the image's root file system, unless the whole image was built."""
    if BUILT:
        root = Path(BUILT, "root").resolve(strict=True)
        assert any(root.iterdir()), f"{root} is empty"
        return root
    root = tmp_path_factory.mktemp("image") / "root"
    if programs.name == "debug":
        # Symbols of programs that are hardly optimized take nearly as much as their code.
        stripped = tmp_path_factory.mktemp("programs")
        for name in ("hlorank", "hlorank-server"):
            subprocess.run(["strip", "-o", stripped / name, programs / name], check=True)
        programs = stripped
    environment = os.environ | {"PROGRAMS": str(programs)}
    subprocess.run([DEPLOY / "image/root.sh", root], env=environment, check=True)
    return root


@pytest.fixture(scope="session")
def sandbox(root: Path) -> Path:
    """Returns the root file system; skips the test if programs cannot run in it."""
    if not shutil.which("unshare") or not shutil.which("setpriv"):
        pytest.skip("unshare and setpriv (util-linux) are missing")
    tried = finish([DEPLOY / "image/run.sh", root, "/usr/bin/hlorank", "--version"], {})
    if "unshare" in tried.stderr or "mount" in tried.stderr:
        pytest.skip(f"this machine makes no namespaces: {tried.stderr}")
    assert tried.returncode == 0, tried.stderr
    return root


def start(root: Path, programs: Path, *options: str) -> Iterator[Container]:
    """Runs the image's entry point with its environment, but with free ports."""
    calls, admin = (f"127.0.0.1:{each}" for each in free_ports(2))
    listeners = {"LISTEN": calls, "METRICS_LISTEN": "127.0.0.1:0", "ADMIN_LISTEN": admin}
    listeners = {f"HLORANK_{name}": value for name, value in listeners.items()}
    environment = image_environment() | listeners | {"PATH": os.environ["PATH"]}
    command = [DEPLOY / "image/run.sh", *options, root, *json.loads(arguments("ENTRYPOINT")[0])]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        endpoints = {"ENDPOINT": f"http://{calls}", "ADMIN_ENDPOINT": f"http://{admin}"}
        endpoints = {f"HLORANK_{name}": value for name, value in endpoints.items()}
        try:
            wait_until_it_serves(process)
            yield Container(process, root, programs, endpoints)
        finally:
            process.kill()


def wait_until_it_serves(process: subprocess.Popen) -> None:
    """Reads the log, one JSON object per line, until the server accepts calls."""
    end, lines = time.monotonic() + PATIENCE, []
    while time.monotonic() < end and (line := process.stderr.readline()):
        lines.append(line)
        if line.startswith("{") and json.loads(line)["fields"]["message"] == "serving":
            return
    pytest.fail(f"the server did not start: {''.join(lines)}")


@pytest.fixture(scope="module")
def container(sandbox: Path, programs: Path) -> Iterator[Container]:
    yield from start(sandbox, programs)


@pytest.fixture
def container_with_models(sandbox: Path, programs: Path, tmp_path: Path) -> Iterator[Container]:
    """Runs a container whose models are a writable mounted folder."""
    models = tmp_path / "models"
    for name in ("tile-iree-cpu", "layout-xla-cpu"):
        shutil.copytree(MODELS / name, models / name)
    models.chmod(0o777)
    yield from start(sandbox, programs, "--models", str(models))


def test_the_image_is_small(root):
    size = sum(file.stat().st_size for file in root.rglob("*") if file.is_file())
    print(f"{size} bytes")
    assert size <= LIMIT


def test_the_image_has_neither_a_shell_nor_links_nor_programs_that_change_the_user(root):
    files = list(root.rglob("*"))
    assert {file.name for file in (root / "usr/bin").iterdir()} == {"hlorank", "hlorank-server"}
    assert not [file for file in files if file.is_symlink()]
    assert not [file for file in files if file.stat().st_mode & 0o7022]


def test_programs_run_in_it_if_the_path_lacks_the_folders_of_the_administrator(sandbox):
    kept = [folder for folder in os.environ["PATH"].split(":") if not folder.endswith("sbin")]
    command = [DEPLOY / "image/run.sh", sandbox, "/usr/bin/hlorank", "--version"]
    environment = {"PATH": ":".join(kept)}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_a_folder_that_is_there_is_left_alone(root):
    again = finish([DEPLOY / "image/root.sh", root], {})
    assert again.returncode == 1
    assert "exists; remove it" in again.stderr


def test_the_image_ranks_for_a_client_outside(container):
    command = ["rank", "--graph", str(KERNELS), "--module", "0", "--top", "all", "--json"]
    ranked = container.outside(*command)
    assert ranked.returncode == 0, ranked.stderr
    [graph] = json.loads(ranked.stdout)["graphs"]
    numbers = [configuration["number"] for configuration in graph["ranking"]]
    assert graph["model"] == VERSION
    assert sorted(numbers) == list(range(len(numbers)))
    scores = [configuration["score"] for configuration in graph["ranking"]]
    assert scores == sorted(scores)


def test_the_server_has_no_rights_and_a_root_that_it_cannot_write(container):
    expected = USER if os.geteuid() == 0 else str(os.geteuid())
    assert set(container.status("Uid")) == {expected}
    assert int(container.status("CapEff")[0], 16) == 0
    assert container.status("NoNewPrivs") == ["1"]
    assert "ro" in container.mounts()["/"]


def test_the_health_check_tells_whether_the_server_answers(container):
    assert container.health_check().returncode == 0
    (unused,) = free_ports(1)
    nowhere = replace(container, endpoints={"HLORANK_ENDPOINT": f"http://127.0.0.1:{unused}"})
    assert nowhere.health_check().returncode != 0


def test_admin_calls_are_refused_where_the_models_cannot_be_written(container):
    pinned = container.outside("models", "pin", VERSION)
    assert pinned.returncode != 0
    assert "POLICY_NOT_KEPT" in pinned.stderr
    assert "/models/policy.json" in pinned.stderr


def test_a_mounted_folder_takes_the_place_of_the_models(container_with_models):
    models = container_with_models.outside("models")
    assert "tile-iree-cpu " in models.stdout
    assert "-sage" not in models.stdout
    pinned = container_with_models.outside("models", "pin", VERSION)
    assert pinned.returncode == 0, pinned.stderr


def test_sigterm_stops_the_server_after_a_stream_has_its_ranking(container_with_models):
    process = container_with_models.process
    graph = read_graphs(KERNELS)[0]
    address = container_with_models.endpoints["HLORANK_ENDPOINT"]
    with Client(address) as client, client.rank_stream(graph.graph) as stream:
        stream.send(graph.configurations)
        assert len(stream.scores().scores) == len(graph.configurations)
        process.send_signal(signal.SIGTERM)
        end = time.monotonic() + PATIENCE
        while container_with_models.health_check().returncode == 0:
            assert time.monotonic() < end, "the server still takes new calls"
        stream.send(graph.configurations)
        ranking = stream.finish()
        assert len(ranking.best) == 2 * len(graph.configurations)
    assert process.wait(PATIENCE) == 0


def test_onnx_runtime_keeps_no_account_of_what_it_runs(programs, tmp_path):
    """With telemetry, it creates a database in the home folder before the server serves."""
    library = REPOSITORY / "target/onnxruntime/libonnxruntime.so"
    settings = {"HLORANK_ONNXRUNTIME": str(library), "HOME": str(tmp_path)} | NO_TELEMETRY
    command = [programs / "hlorank-server", "--listen=127.0.0.1:0", "--metrics-listen=off"]
    command += ["--models", MODELS, "--log-format", "json"]
    with subprocess.Popen(command, env=settings, stderr=subprocess.PIPE, text=True) as process:
        wait_until_it_serves(process)
        process.kill()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not BUILT, reason="needs the image: `make test-image` builds it")
def test_the_image_has_the_settings_of_the_dockerfile():
    settings = json.loads(Path(BUILT, "image.json").read_text())["Docker"]["config"]
    assert dict(each.split("=", 1) for each in settings["Env"]) == image_environment()
    assert settings["Entrypoint"] == json.loads(arguments("ENTRYPOINT")[0])
    assert settings["User"] == arguments("USER")[0]
    assert set(settings["ExposedPorts"]) == {f"{n}/tcp" for n in arguments("EXPOSE")[0].split()}
    _, _, check = arguments("HEALTHCHECK")[0].partition("CMD ")
    assert settings["Healthcheck"]["Test"] == ["CMD", *json.loads(check)]


def test_the_image_sets_settings_of_the_server():
    settings = server_settings()
    environment = image_environment()
    assert foreign_variables(environment) == NO_TELEMETRY | {"PATH": environment["PATH"]}
    for listener in ("HLORANK_LISTEN", "HLORANK_METRICS_LISTEN"):
        assert port(environment[listener]) == port(settings[listener])
        assert environment[listener].startswith("0.0.0.0:")
    ports = [str(port(environment[f"HLORANK_{name}"])) for name in ("LISTEN", "METRICS_LISTEN")]
    assert arguments("EXPOSE")[0].split() == ports


def test_what_the_image_names_is_in_it(root):
    environment = image_environment()
    entry_point = json.loads(arguments("ENTRYPOINT")[0])[0]
    for file in (environment["HLORANK_ONNXRUNTIME"], environment["HLORANK_MODELS"], entry_point):
        assert (root / file.lstrip("/")).exists(), file


def test_the_image_runs_as_a_user_by_number():
    assert arguments("USER") == [f"{USER}:{USER}"]
    assert f"user={USER}\n" in (DEPLOY / "image/run.sh").read_text()


def test_the_image_is_built_on_exact_versions():
    [rust, last] = arguments("FROM")
    assert re.match(r"rust:\d+\.\d+\.\d+-", rust)
    assert last == "scratch"
