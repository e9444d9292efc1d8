import subprocess
import sys

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
        (("study",), ("layout", "iree", "fusion")),
        (("fixtures",), ("layout", "tile", "pool", "whole-graphs", "texts", "fusion")),
    ],
)
def test_help_names_every_command_and_kind(command, names):
    text = shown(*command)
    for name in names:
        assert f"\n    {name}" in text
