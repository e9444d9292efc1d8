"""Tables, as which answers and spaces print themselves."""

from collections.abc import Iterable, Sequence

SHOWN = 10
"""Number of rows that are printed of a longer table."""


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[object]], length: int) -> str:
    """Returns a title and aligned columns, of ``length`` rows the first ten."""
    # Rows may be a generator over millions.
    shown = [[_cell(value) for value in row] for row, _ in zip(rows, range(SHOWN), strict=False)]
    columns = list(zip(headers, *shown, strict=True))
    widths = [max(map(len, column)) for column in columns]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (headers, *shown)
    ]
    more = [f"... {length - SHOWN:,} more"] if length > SHOWN else []
    return "\n".join([title, *lines, *more])


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
