"""Values of the flags of ``hlorank-tune``.

What cannot be read is an error that names the flag, the value and what is expected.
"""

import argparse
import os
import re
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import TypeVar

from hlorank import ArgumentError
from hlorank.answers.models import model_reference
from hlorank.wire.address import host_and_port as read_address
from hlorank.wire.defaults import TARGET_BYTES

T = TypeVar("T")

_LARGEST = 10**9
"""Largest number of a flag."""


def count(text: str) -> int:
    """Reads a whole number from 1."""
    return _whole_number(text, 1)


def natural(text: str) -> int:
    """Reads a whole number from 0."""
    return _whole_number(text, 0)


def _whole_number(text: str, least: int) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else -1
    if not least <= number <= _LARGEST:
        raise argparse.ArgumentTypeError(
            f"'{text}' is not a whole number from {least} to {_LARGEST}"
        )
    return number


def positive(text: str) -> float:
    """Reads a number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number above 0")
    return number


def addresses(text: str) -> list[str]:
    """Reads the address of a server, or those of replicas with commas between them."""
    given = text.split(",")
    for each in given:
        _checked(lambda each=each: read_address(each))
    return given


def model(text: str) -> str:
    """Reads the name of a model."""
    _checked(lambda: model_reference(text))
    return text


def target(text: str) -> str:
    """Reads the name of what run times are measured on."""
    size = len(text.encode(errors="surrogateescape"))
    if not 1 <= size <= TARGET_BYTES:
        raise argparse.ArgumentTypeError(f"has {size} bytes, expected 1 to {TARGET_BYTES}")
    return text


def path(text: str) -> Path:
    """Reads a path, which is not empty."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"'{text}' is not a path")
    return Path(text)


def two_paths(text: str) -> tuple[Path, Path]:
    """Reads the file of a certificate, a comma, and that of its key."""
    certificate, comma, key = text.partition(",")
    if not comma:
        raise argparse.ArgumentTypeError(f"'{text}' is not two paths with a comma between them")
    return path(certificate), path(key)


def of_variable(variable: str, read: Callable[[str], T]) -> Callable[[str], T]:
    """Returns a reader whose error names the variable of the environment that has the value."""

    def read_value(text: str) -> T:
        try:
            return read(text)
        except argparse.ArgumentTypeError as error:
            if os.environ.get(variable) != text:
                raise
            raise argparse.ArgumentTypeError(f"{error}; {variable} has this value") from error

    return read_value


def _checked(read: Callable[[], T]) -> T:
    try:
        return read()
    except ArgumentError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
