"""Files that are complete wherever they exist: whoever is stopped half-way leaves none behind."""

import json
import os
import re
from pathlib import Path
from typing import Any


def write_atomically(path: Path, content: bytes) -> None:
    """Write under a temporary name, then rename: a file that exists is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".partial")
    temporary.write_bytes(content)
    os.replace(temporary, path)


def file_name(name: str) -> str:
    """A name without what a path or a link takes to mean something else."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.") or "program"


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document atomically."""
    write_atomically(path, (json.dumps(value, indent=2, sort_keys=True) + "\n").encode())


def read_json(path: Path) -> Any:
    """Read a JSON document."""
    return json.loads(path.read_text(encoding="utf-8"))
