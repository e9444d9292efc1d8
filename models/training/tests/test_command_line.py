import subprocess
import sys
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
        "fusion-fixtures",
    ):
        assert f"\n    {name}" in shown


def test_a_model_is_refused_features_that_it_was_not_trained_with():
    prepared = SimpleNamespace(feature_digest="b" * 64)
    commands._refuse_other_features({"feature_digest": "b" * 64}, prepared)
    for report in ({"feature_digest": "a" * 64}, {}):
        with pytest.raises(RuntimeError, match="train again"):
            commands._refuse_other_features(report, prepared)
