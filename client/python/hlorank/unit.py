"""The units of scores."""

from typing import Literal

Unit = Literal["seconds", "log_seconds"]
"""``seconds`` of run time, or the natural logarithm of them."""

_NUMBERS: dict[int, Unit] = {1: "seconds", 2: "log_seconds"}


def unit_of(number: int) -> Unit | None:
    """Returns the unit with a number in the wire's ``ScoreUnit``; None if scores only order."""
    return _NUMBERS.get(number)
