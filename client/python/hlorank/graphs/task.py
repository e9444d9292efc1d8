"""The tasks."""

from typing import Literal, get_args

from hlorank.checks.arguments import one_of
from hlorank.wire import messages
from hlorank.wire.words import value_of, word

Task = Literal["tile", "layout", "fusion", "feature-set"]
"""``tile``: one kernel; ``layout``: the layouts of a whole module; ``fusion``: what a whole module
computes in one kernel; ``feature-set``: a graph of any compiler, with columns of a named set."""


def task_value(task: Task) -> messages.Task.ValueType:
    """Returns the wire's value of a task; raises an ArgumentError for others."""
    return value_of(messages.Task, one_of(task, get_args(Task), "task"))


def task_of(value: messages.Task.ValueType) -> Task | None:
    """Returns the task with a value; None if there is none."""
    found = word(messages.Task, value).replace("_", "-")
    return next((task for task in get_args(Task) if task == found), None)
