"""Pipelines that a function of a user's script builds."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from hlorank.errors import HlorankError
from hlorank.measure.script import load_module


@dataclass(frozen=True)
class PipelineFunction:
    """A function without arguments that returns a new ``Pipeline``, or a generator class."""

    place: str
    """A script ``FILE.py``, or the name of a module."""
    name: str
    parameters: tuple[tuple[str, str], ...] = ()
    """Values of the GeneratorParams of a class."""

    @classmethod
    def parse(cls, text: str, parameters: Sequence[str] = ()) -> "PipelineFunction":
        """Reads ``FILE.py:NAME`` or ``MODULE:NAME``, and parameters ``NAME=VALUE``.

        Raises:
            HlorankError: if it has another form.
        """
        place, colon, name = text.rpartition(":")
        if not (place and colon and name.isidentifier()):
            raise HlorankError(
                f"{text} names no function that returns a pipeline, expected FILE.py:NAME"
            )
        pairs = [parameter.partition("=") for parameter in parameters]
        for (key, equals, _), parameter in zip(pairs, parameters, strict=True):
            if not (key and equals):
                raise HlorankError(f"--param {parameter} is not a parameter, expected NAME=VALUE")
        return cls(place, name, tuple((key, value) for key, _, value in pairs))

    def __str__(self) -> str:
        given = "".join(f" {key}={value}" for key, value in self.parameters)
        return f"{self.place}:{self.name}{given}"

    def __call__(self) -> Any:
        """Builds the pipeline.

        Raises:
            HlorankError: if the function does not exist, or returns something else.
        """
        from hlorank.halide.generators import is_generator, pipeline_of_generator
        from hlorank.halide.pipeline import Pipeline

        function = getattr(_module(self.place), self.name, None)
        if not callable(function):
            raise HlorankError(f"{self.place} has no function or generator class {self.name}")
        if is_generator(function):
            return pipeline_of_generator(function, dict(self.parameters))
        if self.parameters:
            raise HlorankError(f"{self.name} is a function, but --param needs a generator class")
        built = function()
        if not isinstance(built, Pipeline):
            kind = type(built).__name__
            raise HlorankError(
                f"{self.name} returns a {kind}, expected a hlorank.halide.pipeline.Pipeline"
            )
        return built


@cache
def _module(place: str) -> ModuleType:
    return load_module(place)
