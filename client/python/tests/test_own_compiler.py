"""docs/bring-your-own-compiler.md as printed, on fewer programs, and without what needs torch."""

import shutil

from page_commands import commands, partition
from servers import DATA, REPOSITORY, run_server

PAGE = REPOSITORY / "docs/bring-your-own-compiler.md"
ARTIFACT = DATA / "loop_nests/registry"
"""What the page's training wrote."""
SHORTER = {
    "python tune.py measure measured": " --programs 2 --schedules 4",
    "python tune.py optimize 0": " --schedules 200",
}
"""Commands, and what the test adds to them so that they take seconds."""


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
