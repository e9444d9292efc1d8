"""docs/bring-your-own-compiler.md as printed, on fewer programs, and without what needs torch."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from page_commands import commands, partition
from servers import DATA, REPOSITORY, command_line, run_server

PAGE = REPOSITORY / "docs/bring-your-own-compiler.md"
ARTIFACT = DATA / "loop_nests/registry"
"""What the page's training wrote."""
SHORTER = {
    "python tune.py measure measured": " --programs 2 --schedules 4",
    "python tune.py optimize 0": " --schedules 200",
}
"""Commands, and what the test adds to them so that they take seconds."""


@pytest.fixture
def shell(tmp_path):
    """Runs a command in an empty folder; returns what it printed."""
    if shutil.which("cc") is None:
        pytest.skip("needs a C compiler: cc")
    folders = Path(sys.executable).parent, command_line().parent, os.environ["PATH"]
    path = ":".join(map(str, folders))

    def run(command: str, **variables: str) -> str:
        known = {"HLORANK": str(REPOSITORY), "PATH": path}
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


def test_every_command_of_the_page_works_from_an_empty_folder(shell, tmp_path):
    before, serve, after = partition(commands(PAGE))
    assert serve == "hlorank-server --models registry"
    for command in before:
        if command.startswith("python -m hlorank_training train feature-set "):
            assert "--data measured --out registry --name loop-nests" in command
            shutil.copytree(ARTIFACT, tmp_path / "registry")
        else:
            shell(command + SHORTER.get(command, ""))
    assert len(list((tmp_path / "measured").glob("*.npz"))) == 2
    with run_server(f"--models={tmp_path / 'registry'}") as address:
        known = {"HLORANK_ENDPOINT": f"http://{address}"}
        printed = {}
        for command in after:
            more = SHORTER.get(command, "")
            more += f" --endpoint {address}" if command.startswith("python tune.py") else ""
            printed[command] = shell(command + more, **known)
    assert "loop-nests" in printed["hlorank models"]
    assert "after 5 measurements" in printed["python tune.py optimize 0"]
    assert set(SHORTER) <= {*before, *after}
