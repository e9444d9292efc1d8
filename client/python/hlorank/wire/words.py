"""The values of the wire's enums as the words that users read, such as ``compile``."""

import re
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # the class of the stubs, which is generic
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper as Enum

V = TypeVar("V", bound=int)


def word(enum: "Enum[V]", number: V) -> str:
    """Returns the word of a value: empty for 0, and ``unknown`` for one of a newer server."""
    if number == 0:
        return ""
    try:
        return enum.Name(number).removeprefix(_prefix(enum)).lower()
    except ValueError:
        return "unknown"


def value_of(enum: "Enum[V]", text: str) -> V:
    """Returns the value of a word that the enum has."""
    return enum.Value(_prefix(enum) + text.upper().replace("-", "_"))


def _prefix(enum: "Enum[V]") -> str:
    """Returns what the names of all values begin with, such as ``MEASUREMENT_FAILURE_``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.DESCRIPTOR.name).upper() + "_"
