"""The pages that train a model, as printed, with a short training."""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from servers import run_server

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from hlorank import Client, NotFoundError
from hlorank_tune.measure.atomic_files import read_json

from hlorank_training.__main__ import main

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "client/python/examples/loop_nests"
SERVED = REPOSITORY / "tests/data/loop_nests/registry/loop-nests/1"
"""What the command of the page wrote, with all of the page's programs."""
PAGE = REPOSITORY / "docs/learn-from-your-measurements.md"
ELSEWHERE = ("pip install ", "hlorank-tune ")
"""Commands that install, or tune a program of the reader."""
PATIENCE = 120.0
"""Seconds until a published model serves, on a busy machine."""


def commands() -> list[str]:
    """The commands of the page, without comments."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    found = [line.removeprefix("$ ").split("#")[0].strip() for line in lines]
    return [command for command in found if not command.startswith(ELSEWHERE)]


@pytest.fixture
def shell(tmp_path, hlorank):
    """Runs a command in an empty folder; returns what it printed."""
    folders = hlorank.parent, Path(sys.executable).parent, os.environ["PATH"]
    known = {"HLORANK": str(REPOSITORY), "PATH": ":".join(map(str, folders))}
    packages = ("models/training", "client/python", "client/tuner")
    known["PYTHONPATH"] = ":".join(str(REPOSITORY / package) for package in packages)

    def run(command: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "-euc", command],
            cwd=tmp_path,
            env=os.environ | known | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    return run


def test_every_command_of_the_loop_works_while_the_server_runs(shell, tmp_path):
    copy, serve, *others = commands()
    assert serve == "hlorank-server --models models --measurements measurements"
    shell(copy)
    flags = f"--models={tmp_path / 'models'}", f"--measurements={tmp_path / 'measurements'}"
    printed = {}
    with run_server(*flags, "--poll-seconds=1") as address:
        for command in others:
            shorter = command.replace("--minutes 5", "--minutes 0.05")
            printed[command] = shell(shorter, HLORANK_ENDPOINT=f"http://{address}")
            if " export tile " in command:
                wait_until_served(address, "tile-my-board")
    reports = [text for command, text in printed.items() if " import " in command]
    assert reports[0] == "896 measurements of 50 graphs are new; 0 were known.\n"
    assert reports[1].startswith("288 measurements of 16 graphs are new")
    assert "--minutes 5" in " ".join(printed), "the training was shortened"
    *_, compared = printed.values()
    # How good the model is depends on how far the short training came.
    assert "tile-iree-cpu@" in compared and "tile-my-board@1" in compared
    assert "288 measured configurations of 16 graphs" in compared


def wait_until_served(address: str, name: str) -> None:
    """Waits until the server has found and checked a model."""
    patience = time.monotonic() + PATIENCE
    with Client(address) as client:
        while time.monotonic() < patience:
            try:
                model = client.get_model(name)
            except NotFoundError:
                time.sleep(0.1)
                continue
            assert model.rejection is None
            if model.serving:
                return
            time.sleep(0.1)
    raise AssertionError(f"{name} does not serve after {PATIENCE} s")


def test_the_page_trains_the_model_that_the_tests_serve(tmp_path, monkeypatch):
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler: cc")
    page = (REPOSITORY / "docs/bring-your-own-compiler.md").read_text()
    (command,) = re.findall(r"^\$ python -m hlorank_training (.*)$", page, re.MULTILINE)
    shorter = ("--programs", "6", "--schedules", "6")
    measure = [sys.executable, EXAMPLE / "tune.py", "measure", "measured", *shorter]
    subprocess.run(measure, cwd=tmp_path, check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["training", *command.split("#")[0].split(), "--epochs", "4"])
    main()
    written = read_json(tmp_path / "registry/loop-nests/1/manifest.json")
    served = read_json(SERVED / "manifest.json")
    for field in ("name", "version", "task", "architecture", "feature_set", "feature_digest"):
        assert written[field] == served[field]
