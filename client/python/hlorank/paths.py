"""Paths of files that callers name."""

import os
from pathlib import Path
from typing import Any

from hlorank.arguments import wrong
from hlorank.errors import MissingFileError


def path_of(value: Any, what: str = "path") -> Path:
    """Checks that a value is a path, and returns it."""
    try:
        text = os.fsdecode(os.fspath(value))
    except Exception as error:  # the caller's class may raise anything
        raise wrong(what, value, "a path") from error
    if not text or "\0" in text:
        raise wrong(what, value, "the path of a file")
    return Path(text)


def file_path(value: Any, what: str = "path") -> Path:
    """Checks that a path names a file that can be opened, and returns it.

    Raises:
        ArgumentError: if it is no path.
        MissingFileError: if there is no such file, or it cannot be opened.
    """
    path = path_of(value, what)
    try:
        path.open("rb").close()
    except (OSError, ValueError) as error:  # ValueError: text that no file system can encode
        reason = error.strerror if isinstance(error, OSError) else error
        raise MissingFileError(f"{path} cannot be read: {reason}") from error
    return path
