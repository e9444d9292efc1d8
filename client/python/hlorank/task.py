"""The tasks."""

from typing import Literal

from hlorank.arguments import one_of

Task = Literal["tile", "layout", "fusion", "feature-set"]
"""``tile``: one kernel; ``layout``: the layouts of a whole module; ``fusion``: what a whole module
computes in one kernel; ``feature-set``: a graph of any compiler, with columns of a named set."""

_NUMBERS: dict[Task, int] = {"tile": 1, "layout": 2, "fusion": 3, "feature-set": 4}


def task_number(task: Task) -> int:
    """Returns the number of a task in the wire's ``Task``; raises an ArgumentError for others."""
    return _NUMBERS[one_of(task, _NUMBERS, "task")]


def task_of(number: int) -> Task | None:
    """Returns the task with a number; None if there is none."""
    return next((task for task, known in _NUMBERS.items() if known == number), None)
