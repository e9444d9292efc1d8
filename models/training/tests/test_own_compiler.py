"""The training step of docs/bring-your-own-compiler.md, on fewer programs."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from hlorank_tune.measure.atomic_files import read_json

from hlorank_training.__main__ import main

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = REPOSITORY / "client/python/examples/loop_nests"
SERVED = REPOSITORY / "tests/data/loop_nests/registry/loop-nests/1"
"""What the command of the page wrote, with all of the page's programs."""


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
