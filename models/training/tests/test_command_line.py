import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("module", "command", "names"),
    [
        ("hlorank_training", (), ("collect", "train", "export", "held-out")),
        ("hlorank_training", ("train",), ("layout", "tile", "fusion", "feature-set")),
        ("hlorank_training.fixtures", (), ("layout", "tile", "pool", "whole-graphs", "texts")),
    ],
)
def test_help_names_every_command_and_kind(module, command, names):
    asked = [sys.executable, "-m", module, *command, "--help"]
    text = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    for name in names:
        assert f"\n    {name}" in text


def test_a_model_is_refused_features_that_it_was_not_trained_with():
    pytest.importorskip("torch", reason="torch is not installed")
    from hlorank_training.runs import refuse_other_features

    digest = "b" * 64
    refuse_other_features({"feature_digest": digest}, digest)
    for report in ({"feature_digest": "a" * 64}, {}):
        with pytest.raises(ValueError, match="train again"):
            refuse_other_features(report, digest)
