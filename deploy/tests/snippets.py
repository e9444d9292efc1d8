"""The commands of pages, with what the pages say that they print, and how to run them."""

import math
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from servers import REPOSITORY

_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_TOKEN = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?|\S")
_END = "\x1e"
"""Separates what commands print."""


@dataclass(frozen=True)
class Command:
    """A command of a page."""

    page: str
    text: str
    expected: str
    """What the page shows below the command; `...` stands for anything."""

    def shows(self, printed: str) -> bool:
        """Returns whether the command printed what the page shows, spaces aside.

        Fractions may differ by a hundredth, because processors round differently.
        """
        rest = _TOKEN.findall(printed)
        for part in self.expected.split("..."):
            wanted = _TOKEN.findall(part)
            places = range(len(rest) - len(wanted) + 1)
            at = next((at for at in places if all(map(_is_alike, wanted, rest[at:]))), None)
            if at is None:
                return False
            rest = rest[at + len(wanted) :]
        return True


def _is_alike(wanted: str, printed: str) -> bool:
    if wanted == printed:
        return True
    if "." not in wanted or not (wanted[-1].isdigit() and printed[-1].isdigit()):
        return False
    return math.isclose(float(wanted), float(printed), rel_tol=0.01)


def pages() -> list[str]:
    """Returns every page of the repository."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    done = subprocess.run(listed, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    return [page for page in done.stdout.splitlines() if (REPOSITORY / page).exists()]


def commands(page: str) -> list[Command]:
    """Returns the commands of a page in order."""
    found = []
    for block in _BLOCK.findall((REPOSITORY / page).read_text()):
        lines = block.splitlines()
        while lines:
            line = lines.pop(0)
            assert line.startswith(("$ ", "# ")), f"{page}: no command before: {line}"
            text = line[2:]
            while not _is_complete(text):
                text += "\n" + lines.pop(0)
            printed = []
            while lines and not lines[0].startswith(("$ ", "# ")):
                printed.append(lines.pop(0))
            found.append(Command(page, text, "\n".join(printed)))
    return found


def _is_complete(text: str) -> bool:
    if text.endswith("\\"):
        return False
    read = subprocess.run(["bash", "-nc", text], capture_output=True, text=True)
    return read.returncode == 0 and "here-document" not in read.stderr


def run(given: list[Command], folder: Path, changes: dict[str, str], path: list[Path]) -> list[str]:
    """Runs commands in one shell, in a folder with everything that the repository has.

    Args:
        given: Commands of one page. A server among them runs in the background until all are done.
        folder: An empty folder, which files that the commands write lie in.
        changes: Texts to replace in the commands, such as addresses.
        path: Folders of programs.

    Returns:
        What each command printed.
    """
    for entry in REPOSITORY.iterdir():
        if entry.name not in ("target", ".git"):
            (folder / entry.name).symlink_to(entry)
    lines = ["set -euo pipefail", "trap 'kill $(jobs -p) 2>/dev/null || true' EXIT"]
    for command in given:
        text = command.text
        for old, new in changes.items():
            text = text.replace(old, new)
        lines += [_in_background(text) if text.startswith("hlorank-server ") else text]
        lines.append(f"printf '\\{ord(_END):o}'")
    environment = os.environ | {"PATH": ":".join(map(str, [*path, os.environ["PATH"]]))}
    done = subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    printed = done.stdout.split(_END)
    if done.returncode:
        stopped = given[len(printed) - 1]
        raise AssertionError(f"{stopped.page}: {stopped.text}\n{printed[-1]}\n{done.stderr}")
    return printed[:-1]


def _in_background(server: str) -> str:
    """Returns a line that starts a server in place of the one before, and waits until it serves."""
    return (
        "kill $(jobs -p) 2>/dev/null && wait || true; rm -f server.log\n"
        f"{server} >server.log 2>&1 &\n"
        "until grep -qs 'serving address' server.log; do kill -0 $!; sleep 0.05; done"
    )
