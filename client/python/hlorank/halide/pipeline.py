"""A Halide pipeline: what a schedule is applied to, and what a run needs."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import halide as hl
import numpy as np

from hlorank.errors import HlorankError

_RANDOM = 65_521
"""Random numbers of an input, which repeat: a prime, so that rows differ."""


class PipelineError(HlorankError):
    """A pipeline that cannot be scheduled; the message says what is missing."""


@dataclass(eq=False)
class Pipeline:
    """A pipeline without a schedule.

    A schedule changes the functions that it is applied to, so each one needs its own pipeline.

    Raises:
        PipelineError: if the pipeline reads other inputs, or they have no estimates.
    """

    output: hl.Func
    extents: Sequence[int]
    """Of the output, the innermost dimension first."""
    inputs: Sequence[hl.ImageParam | hl.Param]
    """With estimates, which are the sizes of the images and the values of the parameters."""
    margin: int = 0
    """Elements around every input image that a schedule may read."""
    pipeline: hl.Pipeline = field(init=False)
    arguments: list[hl.Argument] = field(init=False)
    """In the order of the inputs, without those that the output does not depend on."""

    def __post_init__(self) -> None:
        if self.output.dimensions() != len(self.extents) or len(self.output.types()) != 1:
            raise PipelineError(
                f"the output {self.output.name()} has {self.output.dimensions()} dimensions and "
                f"{len(self.output.types())} values, expected {len(self.extents)} and 1"
            )
        self.output.set_estimates([(0, extent) for extent in self.extents])
        self.pipeline = hl.Pipeline(self.output)
        inferred = {argument.name: argument for argument in self.pipeline.infer_arguments()}
        names = [one.name() for one in self.inputs]
        if missing := sorted(set(inferred).difference(names)):
            raise PipelineError(f"the pipeline also reads {', '.join(missing)}, not in its inputs")
        self.arguments = [inferred[name] for name in names if name in inferred]
        for argument in self.arguments:
            _estimate(argument)

    def input_values(self) -> list[Any]:
        """Returns images with random numbers, the same at every call, and values of parameters."""
        random = np.random.default_rng(0)
        return [_value(argument, self.margin, random) for argument in self.arguments]

    def result(self) -> hl.Buffer:
        """Returns an empty image for the output."""
        return hl.Buffer(self.output.types()[0], list(self.extents))


def _estimate(argument: hl.Argument) -> Any:
    """Returns the extents of an image, or the value of a parameter."""
    estimates = argument.argument_estimates
    try:
        if argument.dimensions:
            return [hl.evaluate(each.extent) for each in estimates.buffer_estimates]
        return hl.evaluate(estimates.scalar_estimate)
    except hl.HalideError as error:
        raise PipelineError(f"input {argument.name} needs estimates: set_estimates") from error


def _value(argument: hl.Argument, margin: int, random: np.random.Generator) -> Any:
    estimate = _estimate(argument)
    if not argument.dimensions:
        return estimate
    buffer = hl.Buffer(argument.type, [extent + 2 * margin for extent in estimate])
    buffer.set_min([-margin] * len(estimate))
    values = np.asarray(buffer)
    values[...] = np.resize(_numbers(values.dtype, random), values.shape)
    return buffer


def _numbers(dtype: np.dtype, random: np.random.Generator) -> np.ndarray:
    if dtype.kind == "f":
        return random.standard_normal(_RANDOM)
    largest = 1 if dtype.kind == "b" else min(255, np.iinfo(dtype).max)
    return random.integers(0, largest, _RANDOM, endpoint=True)
