"""Images that schedules run on, of every numeric type of Halide."""

from collections.abc import Sequence
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import halide as hl
import numpy as np

from hlorank_training.measuring.halide.standard_error import printed

_RANDOM = 65_521
"""Random numbers of an image, which repeat: a prime, so that rows differ."""

Region = Sequence[tuple[int, int]]
"""Minimum and extent of every dimension, the innermost first."""


def check_type(kind: Any) -> str:
    """Says why a type cannot be drawn and compared; empty if it can."""
    if kind.lanes() != 1:
        return "a vector; expected one number for each element"
    if not (kind.is_float() or kind.is_bfloat() or kind.is_int() or kind.is_uint()):
        return "a handle; expected numbers"
    return ""


def empty_image(kind: Any, region: Region) -> hl.Buffer:
    """Returns an image without values."""
    buffer = hl.Buffer(kind, [extent for _, extent in region])
    if region:
        buffer.set_min([least for least, _ in region])
    return buffer


def drawn_image(kind: Any, region: Region, random: np.random.Generator) -> hl.Buffer:
    """Returns an image with random numbers."""
    if kind.is_bfloat():
        return _converted(drawn_image(hl.Float(32), region, random), kind)
    buffer = empty_image(kind, region)
    values = np.asarray(buffer)
    values[...] = np.resize(_numbers(values.dtype, random), values.shape)
    return buffer


def values_of(image: hl.Buffer) -> np.ndarray:
    """Returns a copy of the values of an image; those of bfloat16 as f32."""
    if image.type().is_bfloat():
        image = _converted(image, hl.Float(32))
    return np.array(image)


def _converted(image: hl.Buffer, kind: Any) -> hl.Buffer:
    """Converts with Halide, since NumPy has no bfloat16."""
    region = [(image.dim(i).min(), image.dim(i).extent()) for i in range(image.dimensions())]
    axes = [hl.Var() for _ in region]
    convert = hl.Func("convert")
    converted = empty_image(kind, region)
    convert[axes] = hl.cast(kind, image[axes])
    # Halide says that it emulates the type.
    with printed(), redirect_stdout(StringIO()):
        convert.realize(converted)
    return converted


def _numbers(dtype: np.dtype, random: np.random.Generator) -> np.ndarray:
    if dtype.kind == "f":
        return random.standard_normal(_RANDOM)
    largest = 1 if dtype.kind == "b" else min(255, np.iinfo(dtype).max)
    return random.integers(0, largest, _RANDOM, endpoint=True)
