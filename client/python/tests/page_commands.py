"""The commands of a page that tests of their own run."""

import re
from pathlib import Path

INSTALLS = ("make ", "python3 -m venv ", "pip install ")


def commands(page: Path) -> list[str]:
    """The commands in the code blocks of a page, without their comments."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(), re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    return [line.removeprefix("$ ").split("#")[0].strip() for line in lines]


def partition(found: list[str]) -> tuple[list[str], str, list[str]]:
    """What comes before the server, the server, and what comes after it, without installations."""
    found = [command for command in found if not command.startswith(INSTALLS)]
    (at,) = (number for number, command in enumerate(found) if command.startswith("hlorank-server"))
    return found[:at], found[at], found[at + 1 :]
