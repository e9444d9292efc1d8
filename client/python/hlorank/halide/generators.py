"""Halide's generator classes as pipelines."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import halide as hl

from hlorank.halide.pipeline import Pipeline, PipelineError

_BOOLS = {"true": True, "True": True, "1": True, "false": False, "False": False, "0": False}


def is_generator(value: Any) -> bool:
    """Returns whether a value is a generator class."""
    return isinstance(value, type) and issubclass(value, hl.Generator)


def pipeline_of_generator(generator: type, parameters: Mapping[str, Any]) -> Pipeline:
    """Builds the pipeline of a generator class, whose ``generate`` sets all estimates.

    ``parameters`` are values of its GeneratorParams, also as text, and types and dimensions such
    as ``input.type``. The generator is built for this machine, with ``using_autoscheduler()``.

    Raises:
        PipelineError: if a value does not suit, or an input or output has no estimates.
    """
    autoscheduler = hl.AutoschedulerParams("Adams2019", {"parallelism": 1})
    context = hl.GeneratorContext(hl.get_host_target(), autoscheduler)
    name = generator.__name__
    if not hasattr(generator, "_halide_registered_name"):
        # A class without the decorator hl.generator, which gives this name.
        generator._halide_registered_name = name
    with context:
        made = generator()
        for key, value in parameters.items():
            made._set_generatorparam_value(key, _value_of(generator, key, value))
        try:
            with _estimates() as regions:
                pipeline = made._build_pipeline()
        except hl.HalideError as error:
            raise PipelineError(f"the generator {name} cannot be built: {_first(error)}") from error
    infos = made._get_arginfos()
    inputs = [info.name for info in infos if info.dir == hl.ArgInfoDirection.Input]
    return Pipeline.built(pipeline, regions, [getattr(made, one) for one in inputs])


@contextmanager
def _estimates() -> Iterator[dict[str, list[tuple[int, int]]]]:
    """Yields the estimates that functions get meanwhile, by name; Halide does not return them."""
    found: dict[str, list[tuple[int, int]]] = {}
    one = hl.Func.set_estimate
    several = hl.Func.set_estimates

    def set_estimate(function: Any, axis: Any, least: Any, extent: Any) -> Any:
        axes = [argument.name() for argument in function.args()]
        region = found.setdefault(function.name(), [(0, 0)] * len(axes))
        region[axes.index(axis.name())] = _numbers((least, extent))
        return one(function, axis, least, extent)

    def set_estimates(function: Any, region: Any) -> Any:
        found[function.name()] = [_numbers(pair) for pair in region]
        return several(function, region)

    hl.Func.set_estimate = set_estimate
    hl.Func.set_estimates = set_estimates
    try:
        yield found
    finally:
        hl.Func.set_estimate = one
        hl.Func.set_estimates = several


def _numbers(interval: Any) -> tuple[int, int]:
    least, extent = (hl.evaluate(hl.cast(hl.Int(32), value)) for value in interval)
    return least, extent


def _value_of(generator: type, key: str, value: Any) -> Any:
    """Reads the value of a parameter from text."""
    declared = getattr(generator, key, None)
    if not isinstance(declared, hl.GeneratorParam):
        if key.endswith((".type", ".dim")):
            return value
        known = [n for n in dir(generator) if isinstance(getattr(generator, n), hl.GeneratorParam)]
        raise PipelineError(
            f"the generator {generator.__name__} has no GeneratorParam {key}, only "
            f"{', '.join(known) or 'none'}"
        )
    kind = type(declared._value)
    try:
        if kind is bool and isinstance(value, str):
            return _BOOLS[value]
        return hl.GeneratorParam._parse_value(key, kind, value)
    except (ValueError, KeyError, hl.HalideError) as error:
        raise PipelineError(
            f"the GeneratorParam {key} of {generator.__name__} is {value!r}, expected a value of "
            f"type {kind.__name__}"
        ) from error


def _first(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
