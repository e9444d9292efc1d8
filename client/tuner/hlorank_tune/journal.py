"""The results of a run, one JSON document per line, from which a stopped run continues."""

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hlorank import HlorankError
from hlorank.checks.files import decoded, parsed

RESULTS_FILE = "results.jsonl"
_BUDGET = ("measurements", "seconds")
"""What a run may have more of when it goes on; None is no limit."""


class JournalError(HlorankError):
    """A results file that is missing, broken, or belongs to another run."""


class Journal:
    """Appends rows to a results file, and returns the existing ones.

    The first row describes the run, and so does a later one, from where it goes on with a larger
    budget. A file with results of another run is not changed.
    """

    def __init__(self, folder: Path, run: dict[str, Any]):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        """The folder of the results."""
        self._path = folder / RESULTS_FILE
        rows = list(read_rows(self._path)) if self._path.exists() else []
        old = next((row["run"] for row in reversed(rows) if "run" in row), None)
        goes_on = _has_more(old, run)
        is_other = bool(rows) and old != run and not goes_on
        is_without_results = len(rows) == 1 and "run" in rows[0]
        if is_other and not is_without_results:
            raise JournalError(_refusal(folder, old, run))
        self.rows = rows[1:]
        """The rows that were written before a stopped run was continued."""
        self._file = self._path.open("a", encoding="utf-8")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self.close()
            reason = "is in use by another search"
            if not isinstance(error, BlockingIOError):
                reason = f"cannot be locked on this file system: {error.strerror}"
            raise JournalError(f"{self._path} {reason}; choose another folder") from error
        content = self._path.read_bytes()
        # A kill may leave an incomplete last line.
        if not content.endswith(b"\n"):
            self._file.truncate(content.rfind(b"\n") + 1)
        if is_other:
            # The other run failed before it measured, for example without a server.
            self._file.truncate(0)
        if is_other or not rows:
            self.write({"run": run})
        elif goes_on:
            self.rows.append({"run": run, "seconds": rows[-1].get("seconds", 0)})
            self.write(self.rows[-1])

    def write(self, row: dict[str, Any]) -> None:
        """Appends a row and syncs it to the disk."""
        self._file.write(json.dumps(row) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yields the rows of a file, without an incomplete last line, which a kill may leave.

    Raises:
        JournalError: if the file cannot be read, or a line is not a JSON object.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JournalError(f"{path} cannot be read: {error.strerror}") from error
    lines = decoded(content, path, JournalError).splitlines(keepends=True)
    for number, line in enumerate(lines, 1):
        if not line.endswith("\n"):
            return
        row = parsed(line, f"{path}, line {number}", JournalError)
        if not isinstance(row, dict):
            raise JournalError(f"{path}, line {number} is no JSON object")
        yield row


def _has_more(old: Any, new: dict[str, Any]) -> bool:
    """Returns whether a run differs from an earlier one by a larger budget alone."""
    if not isinstance(old, dict) or old == new or old | {k: new.get(k) for k in _BUDGET} != new:
        return False
    return all(
        new[key] is None or (old[key] is not None and old[key] <= new[key])
        for key in _BUDGET
        if key in old
    )


_SHOWN = 3
"""Maximum number of differences in a message."""
_SHORT = 32
"""Maximum length of a value in a message."""


def _refusal(folder: Path, old: Any, new: dict[str, Any]) -> str:
    """Says what to do about a folder with another run, and then how that run differs."""
    if not isinstance(old, dict):
        differences = "its first line does not describe a run"
    elif old.get("identity") != new.get("identity"):
        differences = "it was of another program or for another compiler"
    else:
        keys = sorted(k for k in old.keys() | new.keys() if old.get(k) != new.get(k))
        texts = []
        for key in keys[:_SHOWN]:
            before, after = (
                "none" if run.get(key) is None else str(run[key]) for run in (old, new)
            )
            is_short = max(len(before), len(after)) <= _SHORT
            texts.append(f"{key} {before}, not {after}" if is_short else key)
        more = [f"{len(keys) - _SHOWN} more"] if len(keys) > _SHOWN else []
        differences = "different: " + ", ".join([*texts, *more])
    return (
        f"{folder} has the results of another run: name another folder with --out\n"
        f"({differences}; to begin anew in this folder, delete {folder / RESULTS_FILE})"
    )
