"""A Halide pipeline: what a schedule is applied to, and what a run needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import halide as hl
import numpy as np
from hlorank import HlorankError

from hlorank_training.measuring.halide.images import check_type, drawn_image, empty_image

Interval = tuple[int, int]
"""Minimum and extent of a dimension."""


class PipelineError(HlorankError):
    """A pipeline that cannot be scheduled; the message says what is missing."""


@dataclass(eq=False)
class Pipeline:
    """A pipeline without a schedule.

    A schedule changes the functions that it is applied to, so each one needs its own pipeline.

    Raises:
        PipelineError: if the pipeline reads other inputs, they have no estimates, or the type of an
            input or output is not a number.
    """

    output: hl.Func | Sequence[hl.Func]
    """One function or several, each with one value or a tuple."""
    extents: Sequence[Any]
    """Of the output, the innermost dimension first; of several outputs, one list for each."""
    inputs: Sequence[hl.ImageParam | hl.Param]
    """With estimates, which are the sizes of the images and the values of the parameters."""
    margin: int = 0
    """Elements around every input image that a schedule may read."""
    pipeline: hl.Pipeline = field(init=False)
    arguments: list[hl.Argument] = field(init=False)
    """In the order of the inputs, without those that the outputs do not depend on."""

    def __post_init__(self) -> None:
        several = not isinstance(self.output, hl.Func)
        self.outputs = list(self.output) if several else [self.output]
        sizes = list(self.extents) if several else [self.extents]
        if not self.outputs or len(sizes) != len(self.outputs):
            raise PipelineError(
                f"there are {len(self.outputs)} outputs and {len(sizes)} lists of extents, "
                "expected one list for each output"
            )
        pairs = zip(self.outputs, sizes, strict=True)
        self.regions = [_region(output, extents) for output, extents in pairs]
        for output, region in zip(self.outputs, self.regions, strict=True):
            if region:
                output.set_estimates(region)
        self._complete(hl.Pipeline(self.outputs))

    @classmethod
    def built(
        cls, pipeline: hl.Pipeline, regions: Mapping[str, Sequence[Interval]], inputs: Sequence[Any]
    ) -> "Pipeline":
        """Takes a pipeline with estimates, such as that of a generator.

        ``regions`` has the estimates of every output by its name.
        """
        made = cls.__new__(cls)
        made.outputs = list(pipeline.outputs())
        made.output = made.outputs
        made.inputs = inputs
        made.margin = 0
        for output in made.outputs:
            if len(regions.get(output.name(), ())) != output.dimensions():
                raise without_estimates(f"output {output.name()}")
        made.regions = [list(regions.get(output.name(), ())) for output in made.outputs]
        made.extents = [[extent for _, extent in region] for region in made.regions]
        made._complete(pipeline)
        return made

    def _complete(self, pipeline: hl.Pipeline) -> None:
        self.pipeline = pipeline
        inferred = {argument.name: argument for argument in self.pipeline.infer_arguments()}
        names = [one.name() for one in self.inputs]
        if missing := sorted(set(inferred).difference(names)):
            raise PipelineError(f"the pipeline also reads {', '.join(missing)}, not in its inputs")
        self.arguments = [inferred[name] for name in names if name in inferred]
        for argument in self.arguments:
            _check_type(argument.type, f"input {argument.name}")
            _estimate(argument)
        for output in self.outputs:
            for kind in output.types():
                _check_type(kind, f"output {output.name()}")

    def input_values(self) -> list[Any]:
        """Returns images with random numbers, the same at every call, and values of parameters."""
        random = np.random.default_rng(0)
        return [_value(argument, self.margin, random) for argument in self.arguments]

    def results(self) -> list[hl.Buffer]:
        """Returns an empty image for every value of the outputs, in order."""
        regions = zip(self.outputs, self.regions, strict=True)
        return [empty_image(kind, region) for output, region in regions for kind in output.types()]


def _region(output: hl.Func, extents: Any) -> list[Interval]:
    """Checks the extents of an output."""
    try:
        region = [(0, int(extent)) for extent in extents]
    except (TypeError, ValueError) as error:
        raise PipelineError(f"the extents are {extents!r}, expected a list of numbers") from error
    if output.dimensions() != len(region):
        raise PipelineError(
            f"the output {output.name()} has {output.dimensions()} dimensions, "
            f"but {len(region)} extents"
        )
    return region


def without_estimates(what: str) -> PipelineError:
    """Returns the error about an input or output without estimates."""
    return PipelineError(
        f"{what} has no estimates: call set_estimates([(0, EXTENT), ...]) of an image, or "
        "set_estimate(VALUE) of a parameter"
    )


def _check_type(kind: Any, what: str) -> None:
    if problem := check_type(kind):
        raise PipelineError(f"{what} has the type {kind}: {problem}")


def _is_image(argument: hl.Argument) -> bool:
    return argument.kind != hl.ArgumentKind.InputScalar


def _estimate(argument: hl.Argument) -> Any:
    """Returns the minimum and extent of every dimension of an image, or a parameter's value."""
    estimates = argument.argument_estimates
    try:
        if _is_image(argument):
            return [
                (hl.evaluate(each.min), hl.evaluate(each.extent))
                for each in estimates.buffer_estimates
            ]
        return hl.evaluate(estimates.scalar_estimate)
    except (hl.HalideError, TypeError) as error:
        raise without_estimates(f"input {argument.name}") from error


def _value(argument: hl.Argument, margin: int, random: np.random.Generator) -> Any:
    estimate = _estimate(argument)
    if not _is_image(argument):
        return estimate
    region = [(least - margin, extent + 2 * margin) for least, extent in estimate]
    return drawn_image(argument.type, region, random)
