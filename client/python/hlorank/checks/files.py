"""Files that callers name: read, with errors that name the file, the condition and what to do."""

import json
from typing import Any

from hlorank.checks.arguments import path_of, wrong
from hlorank.checks.errors import ArgumentError, HlorankError, MissingFileError


def file_content(value: object, what: str = "path") -> bytes:
    """Checks that a path names a file that can be read, and returns its bytes.

    Raises:
        ArgumentError: if it is no path.
        MissingFileError: if there is no such file, or it cannot be opened.
    """
    path = path_of(value, what)
    try:
        return path.read_bytes()
    except OSError as error:
        raise MissingFileError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:  # text that no file system can encode
        raise MissingFileError(f"{path} cannot be read: no file has such a name") from error


def write_json(value: object, given: object, indent: int | None = None) -> None:
    """Writes a JSON document to the path that a caller gives.

    Raises:
        ArgumentError: if it is no path, or the file cannot be written.
    """
    path = path_of(given)
    try:
        path.write_text(json.dumps(value, indent=indent), encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"{path} cannot be written: {error.strerror}") from error
    except ValueError as error:  # text that no file system can encode
        raise wrong("path", given, "the path of a file") from error


def decoded(content: bytes, where: object, error: type[HlorankError]) -> str:
    """Returns a file's content as text; raises ``error`` about ``where`` if it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        line = content.count(b"\n", 0, problem.start) + 1
        raise error(
            f"{where} is not text in UTF-8, line {line} is the first that is not: save it as UTF-8"
        ) from problem


def parsed(text: str, where: object, error: type[HlorankError]) -> Any:
    """Returns the value of a JSON document; raises ``error`` about ``where`` if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        reason = "is no JSON document"
        if isinstance(problem, json.JSONDecodeError):
            is_cut = not text[problem.pos :].strip() or problem.msg.startswith("Unterminated")
            place = f"at line {problem.lineno}, column {problem.colno}"
            reason = (
                "ends within a JSON document: it was cut off" if is_cut else f"{reason} {place}"
            )
        raise error(f"{where} {reason}") from problem
