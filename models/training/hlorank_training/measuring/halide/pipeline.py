"""A Halide pipeline: what a schedule is applied to, and what a run needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import halide as hl
import numpy as np

_RANDOM = 65_521
"""Random numbers of an image, which repeat: a prime, so that rows differ."""


@dataclass(eq=False)
class Pipeline:
    """A pipeline of f32 images without a schedule."""

    output: hl.Func
    extents: Sequence[int]
    """Of the output, the innermost dimension first."""
    inputs: Sequence[hl.ImageParam]
    """With estimates, which are their sizes."""
    margin: int = 0
    """Elements around every input that a schedule may read."""

    def __post_init__(self) -> None:
        self.output.set_estimates([(0, extent) for extent in self.extents])
        self.pipeline = hl.Pipeline(self.output)
        inferred = {argument.name: argument for argument in self.pipeline.infer_arguments()}
        names = [one.name() for one in self.inputs]
        # Without those that the output does not depend on.
        self.arguments = [inferred[name] for name in names if name in inferred]

    def input_values(self) -> list[hl.Buffer]:
        """Returns images with random numbers, the same at every call."""
        random = np.random.default_rng(0)
        return [self._drawn(argument, random) for argument in self.arguments]

    def _drawn(self, argument: hl.Argument, random: np.random.Generator) -> hl.Buffer:
        region = [
            (hl.evaluate(each.min) - self.margin, hl.evaluate(each.extent) + 2 * self.margin)
            for each in argument.argument_estimates.buffer_estimates
        ]
        image = hl.Buffer(argument.type, [extent for _, extent in region])
        image.set_min([least for least, _ in region])
        values = np.asarray(image)
        values[...] = np.resize(random.standard_normal(_RANDOM), values.shape)
        return image

    def result(self) -> hl.Buffer:
        """Returns an empty image of the output."""
        return hl.Buffer(hl.Float(32), list(self.extents))
