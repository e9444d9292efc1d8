"""The wheel in an environment without Rust; `make test-wheel` builds it, and names it in WHEEL."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from replicas import wait_for
from servers import REPOSITORY

PATIENCE = 60.0
RANKED = "layout_random_window_nchw_train.pb"


def wheel() -> Path:
    if "WHEEL" not in os.environ:
        pytest.skip("needs the wheel: `make test-wheel` builds it")
    return Path(os.environ["WHEEL"])


def environment(folder: Path, *options: str, with_tuner: bool = False) -> Path:
    """Returns the folder of the programs of a new environment with the wheel.

    The packages of the tuner may come from the environment of `make test-iree`: jax is large.
    """
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    wheels = [wheel()]
    if with_tuner:
        wheels += wheel().parent.glob("hlorank_tune-*.whl")
        installed = (REPOSITORY / "target/iree" / packages.relative_to(folder)).glob("*")
        for package in installed:
            own = packages / package.name
            if not package.name.startswith("hlorank") and not own.exists():
                own.symlink_to(package)
    pip = [folder / "bin/python", "-m", "pip", "install", "--quiet", *options, *wheels]
    subprocess.run([*pip, "--disable-pip-version-check"], check=True)
    return folder / "bin"


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    return environment(tmp_path_factory.mktemp("wheel") / "environment")


def variables(programs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HLORANK_")}
    return kept | {"PATH": f"{programs}:/usr/bin:/bin"}


def run(programs: Path, *command: str, **changed: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=variables(programs) | changed,
        cwd=programs,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_the_demo_ranks_layouts_tiles_and_fusions(programs):
    # Variables that are set to nothing are not set.
    demo = run(programs, "hlorank", "demo", HLORANK_MODELS="", HLORANK_ONNXRUNTIME="")
    assert demo.returncode == 0, demo.stderr
    assert demo.stdout.count("rank  number") == 3 and "predicted" in demo.stdout
    assert "The best of the top 5" in demo.stdout


@contextmanager
def serving(programs: Path, log: Path) -> Iterator[str]:
    """A server; gives its address."""
    command = ["hlorank", "serve", "--listen=127.0.0.1:0", "--metrics-listen=off"]
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=variables(programs), cwd=programs, stderr=output) as server,
    ):

        def address() -> re.Match | None:
            assert server.poll() is None, log.read_text()
            return re.search(r"serving address=(\S+)\s", log.read_text())

        try:
            yield wait_for("the server", address)[1]
        finally:
            server.terminate()
        assert server.wait(PATIENCE) == 0, "the signal reaches the server"


def test_the_server_answers_the_command_line_and_the_client(programs, tmp_path):
    with serving(programs, tmp_path / "log") as address:
        models = run(programs, "hlorank", "models", HLORANK_ENDPOINT=f"http://{address}")
        assert models.returncode == 0 and "layout-xla-cpu" in models.stdout, models.stderr
        code = (
            "import sys; from measured import read_graphs; from hlorank import Client\n"
            "graph = read_graphs(sys.argv[2])[0]\n"
            "client = Client(sys.argv[1])\n"
            "print(len(client.rank(graph.graph, graph.configurations).best))"
        )
        measured = str(REPOSITORY / "tests/data/measured" / RANKED)
        tests = str(REPOSITORY / "client/python/tests")
        ranked = run(programs, "python", "-c", code, address, measured, PYTHONPATH=tests)
        assert ranked.stdout.strip() == "41", ranked.stderr


def test_the_wheel_of_the_tuner_tunes_with_a_server(tmp_path):
    tuner = environment(tmp_path / "environment", with_tuner=True)
    program = f"{REPOSITORY}/client/tuner/examples/tune_diffusion.py:program"
    with serving(tuner, tmp_path / "log") as address:
        options = [f"--endpoint={address}", f"--out={tmp_path / 'tuned'}", "--measurements=2"]
        # Fusions are measured by processor time, and wait for no quiet machine.
        tuned = run(tuner, "hlorank-tune", "xla", "--fusion", program, *options)
    assert tuned.returncode == 0, tuned.stderr
    assert "2 measurements" in tuned.stdout, tuned.stdout
    assert (tmp_path / "tuned/report.md").exists()


def test_shells_find_completions_and_man_finds_pages_of_every_program(programs):
    share = programs.parent / "share"
    for program in ("hlorank", "hlorank-server"):
        page = (share / f"man/man1/{program}.1").read_text()
        assert ".SH NAME" in page and "\\-\\-" in page, page
        for completions in (
            f"bash-completion/completions/{program}",
            f"fish/vendor_completions.d/{program}.fish",
            f"zsh/site-functions/_{program}",
        ):
            assert program in (share / completions).read_text(), completions


def test_what_is_missing_is_said_in_one_sentence(programs, tmp_path):
    alone = environment(tmp_path / "environment", "--no-deps")
    version = run(alone, "hlorank", "--version")
    assert version.stdout.startswith("hlorank "), "the command line needs no Python package"
    missing = run(alone, "hlorank", "serve")
    assert missing.returncode == 1
    assert "ONNX Runtime is missing; run `pip install" in missing.stderr, missing.stderr
    serve = ["hlorank", "serve", "--listen=127.0.0.1:0", "--metrics-listen=off"]
    other = run(programs, *serve, HLORANK_ONNXRUNTIME="/nowhere/libonnxruntime.so")
    assert other.returncode != 0 and "/nowhere/libonnxruntime.so" in other.stderr
