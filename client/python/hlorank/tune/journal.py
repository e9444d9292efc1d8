"""The results of a run, one JSON document a line, from which a stopped run goes on."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlorank.errors import HlorankError

RESULTS_FILE = "results.jsonl"


class JournalError(HlorankError):
    """A file of results that is not this run's, that is broken, or that is not there."""


class Journal:
    """Appends rows to a file, and gives those that are there.

    The first row tells what the run is; a file of another run is not touched.
    """

    def __init__(self, folder: Path, run: dict[str, Any]):
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / RESULTS_FILE
        rows = list(read_rows(self._path)) if self._path.exists() else []
        if rows and rows[0].get("run") != run:
            raise JournalError(
                f"{self._path} holds another run ({_differences(rows[0].get('run'), run)}); "
                "choose another folder, or remove it"
            )
        self.rows = rows[1:]
        """What an earlier start of the run has written."""
        self._file = self._path.open("a", encoding="utf-8")
        self._lock()
        _end_half_a_line(self._path, self._file)
        if not rows:
            self.write({"run": run})

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            raise JournalError(
                f"{self._path} is being written by another search; choose another folder"
            ) from error

    def write(self, row: dict[str, Any]) -> None:
        """Adds a row, which is on the disk when this returns."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file; half a line, which a kill may leave, is not there.

    Raises:
        JournalError: where there is no such file, or a line is no JSON.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise JournalError(f"{path} is not UTF-8: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        try:
            row = json.loads(line)
        except ValueError as error:
            raise JournalError(f"{path}, line {number}: {error}") from error
        if not isinstance(row, dict):
            raise JournalError(f"{path}, line {number}: expected an object")
        yield row


def _end_half_a_line(path: Path, file: Any) -> None:
    content = path.read_bytes()
    if content and not content.endswith(b"\n"):
        file.truncate(content.rfind(b"\n") + 1)


def _differences(old: Any, new: dict[str, Any]) -> str:
    if not isinstance(old, dict):
        return "its first line does not tell which"
    keys = [key for key in old.keys() | new.keys() if old.get(key) != new.get(key)]
    return ", ".join(f"{key} {old.get(key)!r}, not {new.get(key)!r}" for key in sorted(keys))
