"""The contract of import-linter finds circles of folders, also of a parent and a child."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is not installed")

HERE = Path(__file__).resolve().parents[1]
SETTINGS = """
[tool.importlinter]
root_package = "house"
contract_types = ["folders: import_folders.FoldersContract"]

[[tool.importlinter.contracts]]
id = "folders"
name = "no circles"
type = "folders"
"""


def lint(folder, **modules):
    """The exit code and what is printed about a package with these modules."""
    for name, text in modules.items():
        path = folder / "house" / f"{name.replace('__', '/', 1)}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text)
    (folder / "house" / "__init__.py").touch()
    (folder / "pyproject.toml").write_text(SETTINGS)
    command = [Path(sys.executable).with_name("lint-imports"), "--no-logo", "--no-cache"]
    done = subprocess.run(
        command,
        cwd=folder,
        env={"PYTHONPATH": f"{folder}:{HERE}"},
        capture_output=True,
        text=True,
    )
    return done.returncode, " ".join(done.stdout.split())


def test_a_room_that_uses_its_house_is_no_circle(tmp_path):
    code, printed = lint(tmp_path, door="", room__bed="import house.door")
    assert code == 0, printed


def test_a_house_and_its_room_that_use_each_other_are_a_circle(tmp_path):
    modules = {"door": "", "roof": "import house.room.bed", "room__bed": "import house.door"}
    code, printed = lint(tmp_path, **modules)
    assert code == 1
    assert "house uses house.room: house.roof imports house.room.bed" in printed
    assert "house.room uses house: house.room.bed imports house.door" in printed
