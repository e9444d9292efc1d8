"""Random Halide pipelines of about 5 to 30 stages."""

from dataclasses import dataclass
from random import Random

from hlorank_training.measuring.halide.canvas import Canvas, Tensor
from hlorank_training.measuring.halide.operations import MAX_ELEMENTS, MIN_ELEMENTS, OPERATIONS
from hlorank_training.measuring.halide.pipeline import Pipeline

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
