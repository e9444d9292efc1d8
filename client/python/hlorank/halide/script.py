"""Pipelines that a function of a user's script builds."""

from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

from hlorank.errors import HlorankError
from hlorank.measure.script import load_module


@dataclass(frozen=True)
class PipelineFunction:
    """A function without arguments that returns a new ``Pipeline`` at every call."""

    place: str
    """A script ``FILE.py``, or the name of a module."""
    name: str

    @classmethod
    def parse(cls, text: str) -> "PipelineFunction":
        """Reads ``FILE.py:NAME`` or ``MODULE:NAME``.

        Raises:
            HlorankError: if it has another form.
        """
        place, colon, name = text.rpartition(":")
        if not (place and colon and name.isidentifier()):
            raise HlorankError(
                f"{text} names no function that returns a pipeline, expected FILE.py:NAME"
            )
        return cls(place, name)

    def __call__(self) -> Any:
        """Builds the pipeline.

        Raises:
            HlorankError: if the function does not exist, or returns something else.
        """
        from hlorank.halide.pipeline import Pipeline

        function = getattr(_module(self.place), self.name, None)
        if not callable(function):
            raise HlorankError(f"{self.place} has no function {self.name}")
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
