"""Prints the figures that benchmarks wrote as one table.

Usage: print_figures.py FOLDER
"""

import json
import sys
from pathlib import Path

COLUMNS = ("name", "value", "unit", "target", "passed", "how")


def main(folder: str) -> None:
    """Prints every figure of a folder, by name."""
    figures = [
        json.loads(path.read_text()) for path in sorted(Path(folder).glob("*.json"))
    ]
    if not figures:
        print(f"no figures in {folder}; `make bench` measures them")
        return
    rows = [
        COLUMNS,
        *([cell(figure.get(column)) for column in COLUMNS] for figure in figures),
    ]
    widths = [
        max(len(row[column]) for row in rows) for column in range(len(COLUMNS) - 1)
    ]
    for row in rows:
        padded = [
            value.ljust(width) for value, width in zip(row[:-1], widths, strict=True)
        ]
        print("  ".join([*padded, row[-1]]))


def cell(value: object) -> str:
    """A value as a person reads it."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "NO"
        case float():
            return f"{value:.4g}"
        case _:
            return str(value)


if __name__ == "__main__":
    main(*sys.argv[1:])
