"""Kernels drawn at random, which IREE compiles into one tunable dispatch or a few.

The structure is drawn, not a name from a list: dimensions, layouts, window parameters,
reduced axes, elementwise trees, and the operations before and after. The family of a
kernel names the class of the structure that was drawn; whole families are held out.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax

from hlorank_training.measuring.draw import Draw
from hlorank_training.measuring.random_contractions import contraction
from hlorank_training.measuring.random_maps import elementwise_or_transpose
from hlorank_training.measuring.random_reductions import reduction
from hlorank_training.measuring.random_windows import window

COUNT = 2400

SHARES = {contraction: 40, window: 25, reduction: 20, elementwise_or_transpose: 15}
"""The main operations and how often each is drawn, in percent."""

ORDER = 20
"""Kernels after which the main operations have occurred as often as their shares say."""


@dataclass(frozen=True)
class RandomKernel:
    """One kernel: a JAX function and the shapes and types of its arguments."""

    name: str
    family: str
    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]


def random_kernels(count: int = COUNT) -> Iterator[RandomKernel]:
    """Yields kernels in a fixed order; a prefix has the balance of the whole."""
    return (random_kernel(index) for index in range(count))


def random_kernel(index: int) -> RandomKernel:
    """Returns one kernel, which depends on the index alone."""
    operation = _operation(index)
    families: list[str] = []
    draw = Draw(f"kernel {index}")

    def traced():
        family, result = operation(draw)
        families.append(family)
        return result

    jax.eval_shape(traced)
    arguments = tuple(jax.ShapeDtypeStruct(shape, element) for shape, element in draw.operands)

    def function(*values):
        return operation(Draw(f"kernel {index}", values))[1]

    return RandomKernel(f"{families[0]}_{index:04}", families[0], function, arguments)


def _operation(index: int) -> Callable[[Draw], tuple[str, Any]]:
    """Returns the main operation of a kernel; operations alternate."""
    period = [operation for operation, share in SHARES.items() for _ in range(share * ORDER // 100)]
    return period[index * 7 % ORDER]
