"""Runs every command that a page shows, as a reader would run it."""

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest
from replicas import free_ports, running
from servers import REPOSITORY, server_program
from snippets import Command, commands, pages, run
from sources import DEPLOY

ELSEWHERE = {
    "docs/bring-your-own-compiler.md": "client/python/tests/test_own_compiler.py runs it",
    "docs/learn-from-nothing.md": "client/python/tests/test_learn_from_nothing.py runs it",
    "docs/new-shape.md": "client/python/tests/test_new_shape.py runs it",
    "docs/learn-from-your-measurements.md": (
        "models/training/tests/test_learn_from_measurements.py runs it"
    ),
}
"""Pages that have a test of their own."""
NOT_RUN = {
    "make ": "a recipe: CI runs those that build and test, and the others take long",
    ".ci/run": "CI itself",
    "cargo ": "builds: CI builds the same",
    "python3 -m venv ": "installs packages: `make test-wheel` does",
    "pip install ": "installs packages: `make test-wheel` and the environments of the tests do",
    "apt-get install ": "changes the system",
    "install -D ": "changes the system",
    "mkdir -p /var/lib/hlorank ": "changes the system",
    "openssl ecparam -name prime256v1 ": "test_signed_models.py does it",
    "openssl ec -in models.key ": "test_signed_models.py does it",
    "model_signing ": "test_signed_models.py does it",
    "hlorank-server --models . ": "test_signed_models.py does it",
    "systemctl ": "needs systemd",
    "docker ": "needs an engine; `make test-image` builds and runs the image without one",
    "HLORANK_LISTEN=127.0.0.1:7070 HLORANK_MODELS=/models ": "test_image.py does it",
    "kubectl ": "needs a cluster",
    "helm install ": "needs a cluster",
    "hlorank demo": "a command of the wheel: test_wheel.py",
    "hlorank serve": "a command of the wheel: test_wheel.py",
    "hlorank-tune ": "measures for minutes: test_wheel.py runs a shorter one",
    "iree-compile ": "stands for the reader's own command",
    "protoc ": "needs gRPC for C++",
    "g++ ": "needs gRPC for C++",
    "target/cpp/rank_module ": "needs gRPC for C++",
}
"""Commands by how they begin, with the reason."""
UNSTABLE = {
    "grpcurl -plaintext 127.0.0.1:7070 list": "grpcurl uses either version of reflection",
}
"""Commands whose output is not compared, with the reason."""


@pytest.fixture
def addresses(tmp_path_factory, monkeypatch) -> Iterator[dict[str, str]]:
    """The addresses on pages with those of a server that keeps measurements.

    Each page has a server of its own, so that its caches hold what the page sent. Servers among the
    commands get free ports.
    """
    folder = tmp_path_factory.mktemp("server")
    others, admin = free_ports(2)
    with running(1, folder, HLORANK_MEASUREMENTS=folder / "measurements") as [replica]:
        settings = {
            "ENDPOINT": f"http://127.0.0.1:{replica.port}",
            "LISTEN": f"127.0.0.1:{others}",
            "METRICS_LISTEN": "off",
            "MODELS": REPOSITORY / "models/registry",
            "ONNXRUNTIME": REPOSITORY / "target/onnxruntime/libonnxruntime.so",
        }
        for name, value in settings.items():
            monkeypatch.setenv(f"HLORANK_{name}", str(value))
        yield {
            "127.0.0.1:7070": f"127.0.0.1:{replica.port}",
            "127.0.0.1:7071": f"127.0.0.1:{replica.metrics_port}",
            "127.0.0.1:7072": f"127.0.0.1:{admin}",
            "localhost:7070": f"localhost:{others}",
            "localhost:7072": f"localhost:{admin}",
        }


def runnable() -> dict[str, list[Command]]:
    """Returns the commands to run, by page."""
    found = {}
    for page in pages():
        if page not in ELSEWHERE:
            found[page] = [c for c in commands(page) if not c.text.startswith(tuple(NOT_RUN))]
    return {page: kept for page, kept in found.items() if kept}


@pytest.mark.parametrize("page", runnable())
def test_the_commands_of_a_page_work_and_print_what_it_says(page, addresses, tmp_path):
    given = runnable()[page]
    programs = [server_program().parent, REPOSITORY / "target/python/bin"]
    for command, printed in zip(given, run(given, tmp_path, addresses, programs), strict=True):
        if not command.text.startswith(tuple(UNSTABLE)):
            assert command.shows(printed), f"{command.text}\nprinted:\n{printed}"


def test_lines_that_start_workers_on_a_cluster_have_arguments_that_workers_know():
    page = (REPOSITORY / "docs/many-machines.md").read_text()
    block = re.search(r"^```sh\n(.*?)^```", page, re.M | re.S)[1]
    script = (DEPLOY / "slurm/worker.sbatch").read_text()
    subprocess.run(["bash", "-n"], input=script + block, text=True, check=True)
    lines = re.findall(r"hlorank (worker .*) -- \./bench$", script + block, re.M)
    assert len(lines) == 2
    for line in lines:
        command = [server_program().parent / "hlorank", *shlex.split(line), "--help"]
        subprocess.run(command, check=True, capture_output=True)
    files = re.findall(r"deploy/\S+", block)
    assert all((REPOSITORY / each).exists() for each in files)


def test_every_reason_is_about_a_command_of_a_page():
    texts = [command.text for page in pages() for command in commands(page)]
    unused = [
        start
        for start in (*NOT_RUN, *UNSTABLE)
        if not any(text.startswith(start) for text in texts)
    ]
    assert not unused, f"no page has a command that begins with {unused}"
    assert all((REPOSITORY / page).exists() for page in ELSEWHERE)
