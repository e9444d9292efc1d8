"""Checks of what callers pass, where they pass it."""

import operator
import os
import re
from collections.abc import Iterable, Mapping
from enum import Enum
from math import isnan
from numbers import Real
from pathlib import Path
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from hlorank.checks.errors import ArgumentError

T = TypeVar("T")

U32 = (1 << 32) - 1
U64 = (1 << 64) - 1
"""Largest numbers of the wire's unsigned fields."""
_SHOWN = 60
"""Maximum length of a value in a message."""
_LONGEST = 99_999_999 * 3600.0
"""Seconds of the longest deadline that gRPC can send; a longer one is none."""


def shown(value: object) -> str:
    """Returns a value as a message shows it: shortened, and with its type."""
    if value is None:
        return "None"
    kind = type(value).__name__
    if isinstance(value, np.generic):
        value = value.item()
    if hasattr(value, "shape"):
        return f"{kind} of shape {list(value.shape)}"
    # Without addresses of memory, which say nothing and differ in every process.
    text = re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(value).split()))
    text = f"{text[:_SHOWN]}…" if len(text) > _SHOWN else text
    # Quotes say that it is text.
    return text if isinstance(value, str) else f"{text} ({kind})"


def wrong(what: str, value: object, expected: str) -> ArgumentError:
    """Returns the error about an argument: its name, its value, and what is expected."""
    return ArgumentError(f"{what} is {shown(value)}, expected {expected}")


def instance(value: object, kind: type[T], what: str, expected: str) -> T:
    """Checks that a value is of a class, and returns it."""
    if not isinstance(value, kind):
        raise wrong(what, value, expected)
    return value


def text(value: object, what: str, expected: str = "text") -> str:
    """Checks that a value is text that UTF-8 can encode, and returns it."""
    if not isinstance(value, str):
        raise wrong(what, value, expected)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise wrong(what, value, "text without lone surrogates") from error
    return str(value)


def content(value: object, what: str, expected: str = "bytes") -> bytes:
    """Checks that a value is bytes, and returns them."""
    if not isinstance(value, bytes | bytearray | memoryview):
        raise wrong(what, value, expected)
    return bytes(value)


def whole_number(value: object, what: str, least: int = 0, most: int = U32) -> int:
    """Checks that a value is a whole number in a range, and returns it."""
    # The usual case first: the rest takes as long as a small call.
    if type(value) is int and least <= value <= most:
        return value
    expected = f"a whole number from {least} to {most}"
    if isinstance(value, bool | np.bool_) or not isinstance(value, SupportsIndex):
        raise wrong(what, value, expected)
    try:
        number = operator.index(value)
    except (TypeError, ValueError) as error:  # such as an array of several
        raise wrong(what, value, expected) from error
    if not least <= number <= most:
        raise wrong(what, value, expected)
    return number


def whole_numbers_of(values: object, what: str) -> list[int]:
    """Checks that values are whole numbers from 0, and returns them."""
    items = several(values, what, "whole numbers")
    return [whole_number(item, f"{what}[{place}]") for place, item in enumerate(items)]


def several(values: object, what: str, expected: str) -> list[Any]:
    """Checks that a value is a list or an array of items, and returns them."""
    if not isinstance(values, Iterable) or isinstance(values, str | bytes | Mapping):
        raise wrong(what, values, f"a list of {expected}")
    try:
        return list(values)
    except TypeError as error:  # a NumPy scalar says that it is iterable
        raise wrong(what, values, expected) from error


def flag(value: object, what: str) -> bool:
    """Checks that a value is a bool, 0 or 1, and returns it as a bool."""
    if value is True or value is False:
        return value
    is_flag = isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1))
    if not is_flag:
        raise wrong(what, value, "True or False")
    return bool(value)


def one_of(value: object, choices: Iterable[str], what: str) -> str:
    """Checks that a value is one of several texts, and returns it."""
    expected = list(choices)
    plain = value.value if isinstance(value, Enum) else value
    if not isinstance(plain, str) or plain not in expected:
        raise wrong(what, value, f"one of {', '.join(expected)}")
    return plain


def number(value: object, what: str, expected: str = "a number") -> float:
    """Checks that a value is a real number, and returns it as a float."""
    if not isinstance(value, Real | np.integer | np.floating) or isinstance(value, bool):
        raise wrong(what, value, expected)
    try:
        found = float(value)
    except (TypeError, OverflowError, ValueError) as error:
        raise wrong(what, value, expected) from error
    if isnan(found):
        raise wrong(what, value, expected)
    return found


def seconds(value: object, what: str) -> float | None:
    """Checks a deadline: seconds from 0, or None for none."""
    if value is None:
        return None
    expected = "seconds from 0, or None"
    found = number(value, what, expected)
    if found < 0:
        raise wrong(what, value, expected)
    return found if found <= _LONGEST else None


def path_of(value: object, what: str = "path") -> Path:
    """Checks that a value is a path, and returns it."""
    if not isinstance(value, str | bytes | os.PathLike):
        raise wrong(what, value, "a path")
    text = os.fsdecode(value)
    if not text or "\0" in text:
        raise wrong(what, value, "the path of a file")
    return Path(text)
