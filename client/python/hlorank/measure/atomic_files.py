"""Files that are either complete or absent, even if a process is stopped while it writes."""

import json
import os
import re
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Writes under a temporary name, then renames: a file that exists is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def file_name(name: str) -> str:
    """Returns a name without characters that are special in paths or links."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "program"


def write_json(path: Path, value: Any) -> None:
    """Writes a JSON document atomically."""
    write_atomically(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> Any:
    """Reads a JSON document."""
    return json.loads(path.read_text(encoding="utf-8"))
