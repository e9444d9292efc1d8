"""The values of the wire's enums, such as tasks, as the words that users read."""

import re
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from google.protobuf.descriptor import EnumDescriptor

from hlorank.checks.arguments import one_of
from hlorank.wire import messages

if TYPE_CHECKING:  # the class of the stubs, which is generic
    from google.protobuf.internal.enum_type_wrapper import _EnumTypeWrapper as Enum

V = TypeVar("V", bound=int)


def word(enum: EnumDescriptor, number: int) -> str:
    """Returns the word of a value: empty for 0, and ``unknown`` for one of a newer server."""
    if number == 0:
        return ""
    value = enum.values_by_number.get(number)
    return "unknown" if value is None else value.name.removeprefix(_prefix(enum)).lower()


def known_word(enum: EnumDescriptor, number: int, words: Any) -> Any:
    """Returns the word of a value; None for one that a literal type of words lacks."""
    found = word(enum, number)
    return found if found in get_args(words) else None


def value_of(enum: "Enum[V]", text: str) -> V:
    """Returns the value of a word that the enum has."""
    return enum.Value(_prefix(enum.DESCRIPTOR) + text.upper().replace("-", "_"))


@cache
def _prefix(enum: EnumDescriptor) -> str:
    """Returns what the names of all values begin with, such as ``MEASUREMENT_FAILURE_``."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", enum.name).upper() + "_"


Task = Literal["tile", "layout", "fusion", "feature-set"]
"""``tile``: one kernel; ``layout``: the layouts of a whole module; ``fusion``: what a whole module
computes in one kernel; ``feature-set``: a graph of any compiler, with columns of a named set."""


def task_value(task: Task) -> messages.Task.ValueType:
    """Returns the wire's value of a task; raises an ArgumentError for others."""
    return value_of(messages.Task, one_of(task, get_args(Task), "task"))


def task_of(value: messages.Task.ValueType) -> Task | None:
    """Returns the task with a value; None if there is none."""
    found = word(messages.Task.DESCRIPTOR, value).replace("_", "-")
    return next((task for task in get_args(Task) if task == found), None)
