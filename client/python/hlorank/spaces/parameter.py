"""One parameter of a space: its values, and the numbers that a server sees."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hlorank.checks.arguments import several, wrong
from hlorank.checks.errors import ArgumentError

Value = int | float | bool | str
"""A value of a parameter."""

_EXPECTED = "finite f32 numbers, booleans or text"


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter and its possible values."""

    name: str
    values: tuple[Value, ...]
    """Distinct; either all of them are text, or none is."""

    def __post_init__(self) -> None:
        """Checks that the values differ, also as f32. Raises ArgumentError."""
        if not self.values:
            raise ArgumentError(f"the parameter {self.name!r} has no values")
        are_texts = {isinstance(value, str) for value in self.values}
        if len(are_texts) > 1:
            raise ArgumentError(f"the parameter {self.name!r} has text beside numbers")
        sent = self.values if are_texts == {True} else self.numbers.tolist()
        first: dict[Value, Value] = {}
        for value, number in zip(self.values, sent, strict=True):
            if number in first:
                raise ArgumentError(
                    f"the parameter {self.name!r} has {first[number]!r} and {value!r}, "
                    "which a server cannot tell apart"
                )
            first[number] = value

    @cached_property
    def numbers(self) -> np.ndarray:
        """f32 [values]: numbers as they are, False as 0, True as 1, text by its place from 0."""
        if isinstance(self.values[0], str):
            return np.arange(len(self.values), dtype=np.float32)
        return np.array(self.values, np.float32)

    @cached_property
    def _places(self) -> dict[object, int]:
        return {value: place for place, value in enumerate(self.values)}

    def place(self, value: object) -> int:
        """Returns the place of a value. Raises ArgumentError if it is none of the parameter."""
        try:
            place = self._places.get(value)
        except TypeError:  # what cannot be hashed is no value
            place = None
        if place is None:
            raise wrong(self.name, value, f"one of {listed(self.values)}")
        return place


def parameter_of(name: str, values: Iterable[object]) -> Parameter:
    """Returns the parameter of values in the order given, such as of a list, a range or an array.

    Raises:
        ArgumentError: if a value is no number, boolean or text, or values are equal.
    """
    given = several(values, name, _EXPECTED)
    return Parameter(name, tuple(value_of(value, name) for value in given))


def value_of(value: object, name: str) -> Value:
    """Checks a value, and returns it as one of Python. Raises ArgumentError."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        return plain
    if isinstance(plain, int | float) and _is_finite(plain):
        return plain
    raise wrong(name, value, _EXPECTED)


def _is_finite(value: float) -> bool:
    return abs(value) <= float(np.finfo(np.float32).max)


def listed(values: Sequence[Value]) -> str:
    """Returns the first values as text."""
    shown = ", ".join(map(repr, values[:8]))
    return f"{shown} and {len(values) - 8} others" if len(values) > 8 else shown
