"""Files that are either complete or absent, even if a process is stopped while it writes."""

import json
import os
import re
import secrets
from pathlib import Path
from typing import Any

from hlorank.checks.errors import HlorankError
from hlorank.checks.files import decoded, file_content, parsed


def write_atomically(path: Path, content: bytes) -> None:
    """Writes under a temporary name, then renames: a file that exists is complete.

    A link is followed and stays a link. A pipe or a device is written to, and is never replaced.

    Raises:
        FileNotFoundError: if the path is a link to a file that does not exist.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        path = path.resolve(strict=True)
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    # Nobody can know the name before, and "x" refuses a file or a link that exists.
    temporary = path.with_name(f".{secrets.token_hex(8)}.partial")
    try:
        with temporary.open("xb") as file:
            file.write(content)
        if path.exists():
            temporary.chmod(path.stat().st_mode & 0o777)
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def file_name(name: str) -> str:
    """Returns a name without characters that are special in paths or links."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "program"


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON document atomically."""
    write_atomically(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> Any:
    """Reads a JSON document.

    Raises:
        HlorankError: if the file cannot be read, or is none.
    """
    return parsed(decoded(file_content(path), path, HlorankError), path, HlorankError)
