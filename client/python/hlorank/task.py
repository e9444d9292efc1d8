"""What is being tuned."""

from typing import Literal

Task = Literal["tile", "layout"]
"""``tile``: one kernel; ``layout``: the layouts of a whole module."""

_NUMBERS: dict[Task, int] = {"tile": 1, "layout": 2}


def task_number(task: Task) -> int:
    """The number of the wire's ``Task``; a ValueError for anything else."""
    if task not in _NUMBERS:
        raise ValueError(f"the task is {task!r}, expected 'tile' or 'layout'")
    return _NUMBERS[task]


def task_of(number: int) -> Task | None:
    """The task of a number; None for none."""
    return next((task for task, known in _NUMBERS.items() if known == number), None)
