import subprocess
import sys
import tarfile
from pathlib import Path

import pytest


def shown(*arguments: str) -> str:
    command = [sys.executable, "-m", "hlorank_research", *arguments, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (
            (),
            (
                "train",
                "evaluate",
                "export",
                "compare",
                "within-graph",
                "replay",
                "study",
                "fixtures",
                "check-texts",
            ),
        ),
        (("compare",), ("layout", "tile", "fusion", "feature-set")),
        (("study",), ("layout", "iree", "fusion", "halide")),
        (("fixtures",), ("layout", "tile", "pool", "whole-graphs", "texts", "fusion")),
    ],
)
def test_help_names_every_command_and_kind(command, names):
    text = shown(*command)
    for name in names:
        assert f"\n    {name}" in text


def test_a_server_that_does_not_answer_is_one_sentence(tmp_path):
    wanted = {f"data/halide/{name}" for name in ("p00001.npz", "p00001.json", "feature_set.json")}
    measured = Path(__file__).parents[2] / "training/measured-halide.tar.xz"
    with tarfile.open(measured) as archive:
        found = [member for member in archive if member.name.removeprefix("./") in wanted]
        archive.extractall(tmp_path, found, filter="data")
    command = [sys.executable, "-m", "hlorank_research", "study", "halide"]
    command += ["--data", tmp_path / "data/halide", "--pipelines", "p00001"]
    command += ["--server", "127.0.0.1:1", "--out", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("study halide: ") and "127.0.0.1:1" in done.stderr
