"""Sizes and durations as people write them; the server and the command line read them alike.

A size is a whole number of bytes, or a decimal number with one of the units of ``SIZES``. A
duration is a number of seconds, or a decimal number with one of the units of ``DURATIONS``. Units
are case-sensitive, and a blank may stand before them.
"""

import re
from collections.abc import Iterable
from decimal import Decimal

from hlorank.checks.errors import ArgumentError

SIZES = {
    "B": 1,
    "KiB": 1 << 10,
    "MiB": 1 << 20,
    "GiB": 1 << 30,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
}
"""Bytes of each unit."""
DURATIONS = {"ms": Decimal("0.001"), "s": Decimal(1), "m": Decimal(60), "min": Decimal(60)}
DURATIONS |= {"h": Decimal(3600), "d": Decimal(86400)}
"""Seconds of each unit."""

_NUMBER = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)(?: ?([A-Za-z]+))?")
_LARGEST = (1 << 64) - 1
"""Largest number of bytes."""
_LONGEST = 10**9
_NANOSECONDS = 10**9
"""Longest duration in seconds, and how many nanoseconds, the shortest, a second has."""


def size(text: str) -> int:
    """Reads a number of bytes, such as ``1048576`` or ``64MiB``.

    Raises:
        ArgumentError: if it has another form, or is not a whole number of bytes.
    """
    expected = f"bytes, or a number with {_listed(SIZES)}, such as 64MiB"
    number, unit = _parts(text, expected)
    is_fraction = not unit and "." in text
    if is_fraction or (unit and unit not in SIZES):
        raise ArgumentError(f"'{text}' is not a size, expected {expected}")
    found = number * SIZES[unit or "B"]
    if found != int(found) or found > _LARGEST:
        raise ArgumentError(f"'{text}' is not a size, expected whole bytes below 2^64")
    return int(found)


def duration(text: str, bare: str = "s") -> float:
    """Reads a duration such as ``0.5``, ``500ms`` or ``2h``, and returns its seconds.

    ``bare`` is the unit of a number without one.

    Raises:
        ArgumentError: if it has another form.
    """
    default = {"s": "seconds", "min": "minutes"}[bare]
    expected = f"{default}, or a number with {_listed(DURATIONS)}, such as 500ms"
    number, unit = _parts(text, expected)
    if unit and unit not in DURATIONS:
        raise ArgumentError(f"'{text}' is not a duration, expected {expected}")
    found = number * DURATIONS[unit or bare]
    nanoseconds = found * _NANOSECONDS
    if nanoseconds != int(nanoseconds) or found > _LONGEST:
        raise ArgumentError(
            f"'{text}' is not a duration, expected whole nanoseconds and at most {_LONGEST} s"
        )
    return float(found)


def _parts(text: str, expected: str) -> tuple[Decimal, str]:
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ArgumentError(f"'{text}' is not a number with a unit, expected {expected}")
    return Decimal(found[1]), found[2] or ""


def _listed(units: Iterable[str]) -> str:
    return ", ".join(units)
