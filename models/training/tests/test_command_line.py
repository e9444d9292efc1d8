import subprocess
import sys
from types import SimpleNamespace

import pytest


def shown(*arguments: str) -> str:
    command = [sys.executable, "-m", "hlorank_training", *arguments, "--help"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_help_names_every_command():
    text = shown()
    for name in ("collect", "train", "export", "held-out"):
        assert f"\n    {name}" in text


def test_help_names_every_kind_of_model_that_is_trained():
    text = shown("train")
    for kind in ("layout", "tile", "fusion", "feature-set"):
        assert f"\n    {kind}" in text


def test_a_model_is_refused_features_that_it_was_not_trained_with():
    pytest.importorskip("torch", reason="torch is not installed")
    from hlorank_training.runs import refuse_other_features

    prepared = SimpleNamespace(feature_digest="b" * 64)
    refuse_other_features({"feature_digest": "b" * 64}, prepared)
    for report in ({"feature_digest": "a" * 64}, {}):
        with pytest.raises(RuntimeError, match="train again"):
            refuse_other_features(report, prepared)
