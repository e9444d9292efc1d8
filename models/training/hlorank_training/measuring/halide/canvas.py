"""A Halide pipeline while it grows: its inputs, its functions and their sizes."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

try:
    import halide as hl
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError(
        "pipelines need the package 'halide': .venv/bin/python -m pip install -e '.[halide]'"
    ) from missing

# Halide warns that Python's numbers do not fit into 32 bits exactly.
warnings.filterwarnings("ignore", message="The floating-point value", category=RuntimeWarning)


@dataclass(frozen=True)
class Tensor:
    """A function with three dimensions of known extent."""

    function: hl.Func
    width: int
    height: int
    channels: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Width, height and channels."""
        return self.width, self.height, self.channels

    @property
    def plane(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.width * self.height * self.channels


class Canvas:
    """Defines functions over x, y and channel, in one order of dimensions."""

    def __init__(self, is_planar: bool):
        """``is_planar``: channels are the outermost dimension, else the innermost."""
        self.is_planar = is_planar
        self.x = hl.Var("x")
        self.y = hl.Var("y")
        self.c = hl.Var("c")
        self.inputs: list[hl.ImageParam] = []
        self.functions = 0
        self.operations = 0.0
        """Approximate number of arithmetic operations of a run."""

    def order(self, x: Any, y: Any, c: Any) -> tuple[Any, Any, Any]:
        """Returns coordinates or extents, innermost first."""
        return (x, y, c) if self.is_planar else (c, x, y)

    def at(self, tensor: Tensor, x: Any, y: Any, c: Any) -> hl.Expr:
        """Returns an element."""
        return tensor.function[self.order(x, y, c)]

    def here(self, tensor: Tensor) -> hl.Expr:
        """Returns the element at the current place."""
        return self.at(tensor, self.x, self.y, self.c)

    @property
    def place(self) -> tuple[Any, Any, Any]:
        """The current place, innermost dimension first."""
        return self.order(self.x, self.y, self.c)

    def function(self, kind: str) -> hl.Func:
        """Returns a new function."""
        self.functions += 1
        return hl.Func(f"s{self.functions:02d}_{kind}")

    def define(self, kind: str, value: hl.Expr, shape: Sequence[int], cost: float = 1.0) -> Tensor:
        """Defines a function elementwise; ``cost`` is its number of operations per element."""
        function = self.function(kind)
        function[self.place] = value
        return self.counted(Tensor(function, *shape), cost)

    def reduce(
        self,
        kind: str,
        start: Any,
        step: Callable[[hl.Expr], hl.Expr],
        shape: Sequence[int],
        cost: float,
    ) -> Tensor:
        """Defines a function that ``step`` updates along a reduction domain."""
        function = self.function(kind)
        function[self.place] = start
        function[self.place] = step(function[self.place])
        return self.counted(Tensor(function, *shape), cost)

    def counted(self, tensor: Tensor, cost: float) -> Tensor:
        """Counts the operations of a function."""
        self.operations += cost * tensor.elements
        return tensor

    def image(self, *extents: int) -> hl.ImageParam:
        """Returns a new input."""
        image = hl.ImageParam(hl.Float(32), len(extents), f"i{len(self.inputs):02d}")
        # Estimates, not bounds: a schedule may read a margin around the input.
        for dimension, extent in enumerate(extents):
            image.dim(dimension).set_estimate(0, extent)
        self.inputs.append(image)
        return image
