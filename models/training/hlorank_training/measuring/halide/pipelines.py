"""Halide pipelines: what a schedule is applied to, and random ones of about 5 to 30 stages."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import halide as hl
import numpy as np

from hlorank_training.measuring.halide.canvas import Canvas, Tensor
from hlorank_training.measuring.halide.operations import MAX_ELEMENTS, MIN_ELEMENTS, OPERATIONS

_RANDOM = 65_521
"""Random numbers of an image, which repeat: a prime, so that rows differ."""
_EXTENTS = (48, 64, 96, 128, 192)
_CHANNELS = (4, 8, 16, 32)
SMALL = 10_000
"""Seeds from 10,000 to 19,999 draw small pipelines, which compile in a third of the time."""
_FUNCTIONS = (7, 18)
_FEW = (4, 10)
"""Bounds of the number of functions that are asked for, and of those of small pipelines; updates
make a function several stages."""
_TASTES = (0.3, 1.0, 1.0, 3.0)
"""Factors of the rates of operations, drawn for every pipeline, so that pipelines differ more."""
_MAX_COST = 1.2e8
"""Number of arithmetic operations from which on a pipeline does not grow further."""
_TRIES = 400
_MARGIN = 16
"""Elements around every input: vectors that are longer than a dimension read beyond it."""


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


@dataclass(frozen=True)
class RandomPipeline:
    """Draws a pipeline, the same one for equal seeds."""

    seed: int

    def __call__(self) -> Pipeline:
        """Builds the pipeline, since a schedule changes the one that it is applied to."""
        return random_pipeline(self.seed)


def random_pipeline(seed: int) -> Pipeline:
    """Draws a pipeline, the same one for equal seeds."""
    random = Random(seed)
    canvas = Canvas(is_planar=random.random() < 0.6)
    tensors = [_source(canvas, random)]
    wanted = random.randint(*(_FEW if SMALL <= seed < 2 * SMALL else _FUNCTIONS))
    rates = [rate * random.choice(_TASTES) for rate in OPERATIONS.values()]
    for _ in range(_TRIES):
        if canvas.functions >= wanted or canvas.operations > _MAX_COST:
            break
        (operation,) = random.choices(list(OPERATIONS), rates)
        recent = tensors[-1] if random.random() < 0.75 else random.choice(tensors[-4:])
        tensor = operation(canvas, random, tensors, recent)
        if tensor is not None and MIN_ELEMENTS <= tensor.elements <= MAX_ELEMENTS:
            tensors.append(tensor)
    return _finished(canvas, tensors)


def _source(canvas: Canvas, random: Random) -> Tensor:
    width = random.choice(_EXTENTS)
    height = random.choice(_EXTENTS)
    channels = random.choice(_CHANNELS)
    while width * height * channels > MAX_ELEMENTS:
        channels //= 2
    shape = width, height, channels
    image = canvas.image(*canvas.order(*shape))
    return canvas.define("input", image[canvas.place], shape)


def _finished(canvas: Canvas, tensors: list[Tensor]) -> Pipeline:
    """Adds the last tensors of the output's shape to it, so that fewer are unused."""
    output = tensors[-1]
    for tensor in [one for one in tensors[:-1] if one.shape == output.shape][-2:]:
        output = canvas.define("join", canvas.here(output) + canvas.here(tensor), output.shape)
    return Pipeline(output.function, canvas.order(*output.shape), canvas.inputs, _MARGIN)
