import subprocess
import sys
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from hlorank_training import commands


def test_help_names_every_command():
    command = [sys.executable, "-m", "hlorank_training", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    for name in (
        "collect",
        "describe",
        "train",
        "evaluate",
        "held-out",
        "compare",
        "within-graph",
        "replay",
        "study",
        "study-iree",
        "study-fusion",
        "compare-feature-set",
        "train-feature-set",
        "export",
        "fixtures",
        "pool-fixture",
        "whole-graph-fixtures",
        "text-fixtures",
        "check-texts",
        "fusion-fixtures",
    ):
        assert f"\n    {name}" in shown


def test_a_model_is_refused_features_that_it_was_not_trained_with():
    prepared = SimpleNamespace(feature_digest="b" * 64)
    commands._refuse_other_features({"feature_digest": "b" * 64}, prepared)
    for report in ({"feature_digest": "a" * 64}, {}):
        with pytest.raises(RuntimeError, match="train again"):
            commands._refuse_other_features(report, prepared)


def test_a_server_that_does_not_answer_is_one_sentence(tmp_path):
    wanted = {f"data/halide/{name}" for name in ("p00001.npz", "p00001.json", "feature_set.json")}
    with tarfile.open(Path(__file__).parents[1] / "measured-halide.tar.xz") as archive:
        found = [member for member in archive if member.name.removeprefix("./") in wanted]
        archive.extractall(tmp_path, found, filter="data")
    command = [sys.executable, "-m", "hlorank_training", "study-halide"]
    command += ["--data", tmp_path / "data/halide", "--pipelines", "p00001"]
    command += ["--server", "127.0.0.1:1", "--out", tmp_path / "out.json"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith("study-halide: ") and "127.0.0.1:1" in done.stderr
