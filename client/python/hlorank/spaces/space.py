"""Flat spaces of parameters, which need neither a graph nor a model."""

import json
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from os import PathLike
from typing import Any

import numpy as np

from hlorank.answers.tables import table
from hlorank.checks.arguments import several, text, whole_number, wrong
from hlorank.checks.errors import ArgumentError
from hlorank.checks.files import write_json
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.graphs.features import Instance
from hlorank.graphs.graph import Graph
from hlorank.spaces.bound import Bound, bounds_of
from hlorank.wire.messages import ColumnValues, ConfigSpace

Value = int | float | bool | str | None
"""A value of a parameter; None if it does not apply to a configuration."""

_EXPECTED = "finite f32 numbers, booleans or text"
_ABSENT = -1
"""What a server reads as a parameter that does not apply."""


@dataclass(frozen=True, eq=False)
class Parameter:
    """A parameter and its possible values."""

    name: str
    values: tuple[Value, ...]
    """Distinct; either all of them but None are text, or none is."""

    def __post_init__(self) -> None:
        """Checks that the values differ, also as f32. Raises ArgumentError."""
        are_texts = {isinstance(value, str) for value in self.values if value is not None}
        if not are_texts:
            raise ArgumentError(f"the parameter {self.name!r} has no values")
        if len(are_texts) > 1:
            raise ArgumentError(f"the parameter {self.name!r} has text beside numbers")
        sent = self.values if are_texts == {True} else self.numbers.tolist()
        first: dict[Value, Value] = {}
        for value, number in zip(self.values, sent, strict=True):
            if number in first:
                raise ArgumentError(
                    f"the parameter {self.name!r} has {first[number]!r} and {value!r}, "
                    "which a server cannot tell apart"
                )
            first[number] = value

    @cached_property
    def numbers(self) -> np.ndarray:
        """f32 [values]: numbers as they are, False as 0, True as 1, text by its place from 0, and
        None as -1."""
        sent = (
            _ABSENT if value is None else place if isinstance(value, str) else value
            for place, value in enumerate(self.values)
        )
        return np.array([*sent], np.float32)

    @cached_property
    def _places(self) -> dict[object, int]:
        return {value: place for place, value in enumerate(self.values)}

    def place(self, value: object) -> int:
        """Returns the place of a value. Raises ArgumentError if it is none of the parameter."""
        try:
            place = self._places.get(value)
        except TypeError:  # what cannot be hashed is no value
            place = None
        if place is None:
            raise wrong(self.name, value, f"one of {listed(self.values)}")
        return place


def parameter_of(name: str, values: Iterable[object]) -> Parameter:
    """Returns the parameter of values in the order given, such as of a list, a range or an array.

    Raises:
        ArgumentError: if a value is no number, boolean or text, or values are equal.
    """
    given = several(values, name, _EXPECTED)
    return Parameter(name, tuple(value_of(value, name) for value in given))


def value_of(value: object, name: str) -> Value:
    """Checks a value, and returns it as one of Python. Raises ArgumentError."""
    plain = value.item() if isinstance(value, np.generic) else value
    if plain is None or isinstance(plain, str):
        return plain
    if isinstance(plain, int | float) and is_finite(plain):
        return plain
    raise wrong(name, value, _EXPECTED)


def is_finite(value: float) -> bool:
    """Returns whether f32 has a finite number for a value."""
    return abs(value) <= float(np.finfo(np.float32).max)


def listed(values: Sequence[Value]) -> str:
    """Returns the first values as text."""
    shown = ", ".join(map(repr, values[:8]))
    return f"{shown} and {len(values) - 8} others" if len(values) > 8 else shown


Configuration = Mapping[str, Value]
"""A value for every parameter of a space."""
Function = Callable[[dict[str, Value]], object]
Constraint = Function | str
"""Returns whether a configuration is possible, or says it as ``a * b <= 1024``."""

MAX_CONFIGURATIONS = 500_000
"""The default of the server's ``--max-configs``; a space with more is described, not listed."""
MAX_COMBINATIONS = 5_000_000
"""How many combinations functions are asked about, to list a space: some seconds."""


class Space:
    """The configurations of something with parameters, such as a kernel.

    >>> space = Space("gemm", {"block_m": [16, 32, 64], "vectorize": [False, True]})
    >>> len(space), space[1], space.number({"block_m": 64, "vectorize": False})
    (6, {'block_m': 16, 'vectorize': True}, 4)

    A server learns from a column of numbers for every parameter, in alphabetical order: True counts
    as 1, False as 0, text as its place in the list, from 0, and None, for a parameter that does not
    apply, as -1. So append further texts at the end of a list: a server that keeps measurements
    keeps the numbers.

    With more configurations than a list can have, the space is described: a search draws from all
    combinations, of which there may be 10 to the power of 30. Such a space has no ranking of all.

    Args:
        name: The name of the feature set: 1 to 128 printable ASCII characters.
        parameters: The values of every parameter: numbers or booleans, or text; beside them None.
        constraints: What is true for the configurations to consider: texts that bound products and
            quotients, such as ``"a * b <= 1024"`` and ``"b % a == 0"``, functions of a
            configuration, or both. Of a described space the server checks the texts, and a search
            the functions: it reports a suggestion that is not allowed as ``invalid``.
        instance: What is tuned, if it is one of several with these parameters. Features such as
            ``{"m": 512, "k": 64, "dtype": "bf16"}``, numbers and texts by name, let a server learn
            from all instances of the space; text is a name alone, of which nothing is learned.

    Raises:
        ArgumentError: if a value or a constraint cannot be used, or there are no configurations.
    """

    def __init__(
        self,
        name: str,
        parameters: Mapping[str, Iterable[Value]],
        *,
        constraints: Constraint | Iterable[Constraint] | None = None,
        instance: Instance = "",
    ):
        if not isinstance(parameters, Mapping):
            raise wrong("parameters", parameters, "the values of every parameter")
        if not parameters:
            raise ArgumentError("the space has no parameters")
        lists = [parameter_of(each, values) for each, values in parameters.items()]
        bounds, functions = _constraints_of(constraints, lists)
        places = _combinations(lists, bounds, functions)
        self._take(name, lists, places, instance, bounds, functions)

    @classmethod
    def from_configs(
        cls, name: str, configs: Iterable[Configuration], *, instance: Instance = ""
    ) -> "Space":
        """Takes a list of configurations, each with the same parameters.

        Texts are numbered in alphabetical order, so that the order of the list does not matter.

        Raises:
            ArgumentError: if configurations differ in their parameters, or one is listed twice.
        """
        rows = [
            _row(config, number)
            for number, config in enumerate(several(configs, "configs", "configurations"))
        ]
        if not rows:
            raise ArgumentError("configs is empty, expected at least one configuration")
        names = list(rows[0])
        for number, row in enumerate(rows):
            if row.keys() != rows[0].keys():
                raise ArgumentError(
                    f"configuration {number} has the parameters {', '.join(row)}, "
                    f"but configuration 0 has {', '.join(names)}"
                )
        lists = [_sorted_parameter(each, [row[each] for row in rows]) for each in names]
        places = [[each.place(row[each.name]) for each in lists] for row in rows]
        space = cls.__new__(cls)
        space._take(name, lists, np.array(places, np.uint32), instance)
        if len(space._numbers) < len(rows):
            twice = next(number for number, row in enumerate(rows) if space.number(row) != number)
            raise ArgumentError(f"configuration {twice} is listed twice: {rows[twice]}")
        return space

    def _take(
        self,
        name: str,
        parameters: list[Parameter],
        places: np.ndarray | None,
        instance: Instance,
        bounds: Sequence[Bound] = (),
        functions: Sequence[Function] = (),
    ) -> None:
        if places is not None and not len(places):
            raise ArgumentError("the constraints exclude every combination")
        if places is not None and len(places) > MAX_CONFIGURATIONS:
            raise ArgumentError(
                f"the list has {len(places):,} configurations, at most {MAX_CONFIGURATIONS:,} are "
                "possible: give the values of the parameters and constraints to hlorank.Space"
            )
        # By name, so that users who write parameters in another order share measurements.
        columns = sorted(parameter.name for parameter in parameters)
        self.name = name
        self.graph = Graph.from_feature_set(name, config_columns=columns, instance=instance)
        """What stands for the space in calls about graphs."""
        self.instance = self.graph.instance
        self._parameters = parameters
        self._listed = places
        """u32 [configurations, parameters]: the place of each value in its parameter; None if the
        space is described, whose numbers count all combinations, the last parameter changing
        fastest."""
        # A list needs neither, and functions cannot be sent to other processes.
        self._bounds = () if places is not None else bounds
        self._functions = () if places is not None else functions

    @property
    def parameters(self) -> dict[str, tuple[Value, ...]]:
        """The values of every parameter."""
        return {parameter.name: parameter.values for parameter in self._parameters}

    @property
    def is_described(self) -> bool:
        """Whether the configurations are too many to list."""
        return self._listed is None

    @property
    def description(self) -> ConfigSpace | None:
        """What a server draws from, if the space is described; None if it is listed."""
        if self._listed is not None:
            return None
        columns = sorted(self._parameters, key=lambda parameter: parameter.name)
        names = [parameter.name for parameter in columns]
        return ConfigSpace(
            columns=[ColumnValues(values=parameter.numbers) for parameter in columns],
            constraints=[bound.message(names) for bound in self._bounds],
        )

    @property
    def size(self) -> int:
        """Number of configurations; of a described space, with those that are not allowed. Unlike
        ``len``, it has no limit."""
        if self._listed is not None:
            return len(self._listed)
        return prod(len(parameter.values) for parameter in self._parameters)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, number: int) -> dict[str, Value]:
        place = operator.index(number)
        if not 0 <= place < self.size:
            raise IndexError(f"configuration {place} does not exist, the space has {self.size}")
        places = zip(self._parameters, self._places_of(place), strict=True)
        return {parameter.name: parameter.values[each] for parameter, each in places}

    def __iter__(self) -> Iterator[dict[str, Value]]:
        for number in range(self.size):
            configuration = self[number]
            if not self.is_described or self.allows(configuration):
                yield configuration

    def __repr__(self) -> str:
        of = f" of {self.instance!r}" if self.instance else ""
        what = "configurations" if self._listed is not None else "combinations, described"
        title = f"Space {self.name!r}{of}: {self.size:,} {what}"
        rows = [(name, len(values), listed(values)) for name, values in self.parameters.items()]
        return table(title, ("parameter", "values", "from"), rows, len(rows))

    def number(self, configuration: Configuration | int) -> int:
        """Returns the number of a configuration; a number stands for itself.

        Raises:
            ArgumentError: if the space does not have it; the message says why.
        """
        if isinstance(configuration, Mapping):
            return self._number_of(configuration)
        try:
            return whole_number(configuration, "the configuration", most=self.size - 1)
        except ArgumentError as error:
            expected = f"a value for each parameter, or a number below {self.size}"
            raise wrong("the configuration", configuration, expected) from error

    def allows(self, configuration: Configuration) -> bool:
        """Returns whether a combination of values is one of the configurations.

        Raises:
            ArgumentError: if a function among them fails.
        """
        if self._listed is None:
            one = dict(configuration)
            return _is_possible(one, self._parameters, self._bounds, self._functions)
        return self._number_at(self._places_in(configuration)) is not None

    def numbers(self, configurations: ConfigFeatures) -> list[int | None]:
        """Returns the number of each of what a server keeps; None for what is not in the space."""
        columns = sorted(self.parameters)
        known = [
            {number: place for place, number in enumerate(each.numbers.tolist())}
            for each in self._parameters
        ]
        found = []
        for row in configurations.values()[:, 0, :].tolist():
            sent = dict(zip(columns, row, strict=True))
            pairs = zip(self._parameters, known, strict=True)
            places = [each[sent[one.name]] for one, each in pairs if sent[one.name] in each]
            found.append(self._number_at(places) if len(places) == len(known) else None)
        return found

    def _number_of(self, configuration: Configuration) -> int:
        if configuration.keys() != self.parameters.keys():
            expected = f"the parameters {', '.join(self.parameters)}"
            raise wrong("the configuration", configuration, expected)
        number = self._number_at(self._places_in(configuration))
        if number is None or (self._listed is None and not self.allows(configuration)):
            expected = "one that the constraints, or the list, allow"
            raise wrong("the configuration", configuration, expected)
        return number

    def _places_in(self, configuration: Configuration) -> list[int]:
        return [parameter.place(configuration[parameter.name]) for parameter in self._parameters]

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        """The number of each configuration by its places; the first one, if it is there twice."""
        numbers: dict[bytes, int] = {}
        for number, places in enumerate(() if self._listed is None else self._listed):
            numbers.setdefault(places.tobytes(), number)
        return numbers

    def _number_at(self, places: Sequence[int]) -> int | None:
        """Returns the number of a combination; None if the list does not have it."""
        if self._listed is not None:
            return self._numbers.get(np.array(places, np.uint32).tobytes())
        number = 0
        for parameter, place in zip(self._parameters, places, strict=True):
            number = number * len(parameter.values) + place
        return number

    def _places_of(self, number: int) -> list[int]:
        if self._listed is not None:
            listed: list[int] = self._listed[number].tolist()
            return listed
        places = []
        for parameter in reversed(self._parameters):
            number, place = divmod(number, len(parameter.values))
            places.append(place)
        return places[::-1]

    def write(self, path: str | PathLike[str]) -> None:
        """Writes the space as JSON, as which ``hlorank worker --space`` reads it.

        Raises:
            ArgumentError: if it is no path, the file cannot be written, or functions constrain a
                described space, which no file can have.
        """
        content: dict[str, Any] = {
            "name": self.name,
            "instance": self.instance,
            "parameters": self.parameters,
        }
        if self._listed is None:
            if self._functions:
                raise ArgumentError("functions cannot be written, only constraints that are text")
            content["constraints"] = [bound.written() for bound in self._bounds]
        elif self.size < prod(map(len, self.parameters.values())):
            content["configurations"] = [[*one.values()] for one in self]
        write_json(content, path)

    def encoded(self, configuration: Configuration | int) -> bytes:
        """Returns a configuration as a JSON object, as decisions have it.

        Raises:
            ArgumentError: if the space does not have it.
        """
        return json.dumps(self[self.number(configuration)], sort_keys=True).encode()

    def decoded(self, value: bytes) -> dict[str, Value] | None:
        """Returns the configuration of a decision; None if the space does not have it."""
        try:
            return self[self.number(json.loads(value))]
        except (ValueError, RecursionError):
            return None

    def configurations(self, chosen: Iterable[Configuration | int] | None = None) -> ConfigFeatures:
        """Returns what a call about ``graph`` takes: all configurations, or those chosen.

        Raises:
            ArgumentError: if all are asked for, but the space is described.
        """
        if chosen is None:
            return self._all
        numbers = [self.number(each) for each in several(chosen, "chosen", "configurations")]
        places = [self._places_of(number) for number in numbers]
        return self._packed(
            np.array(places, np.uint32).reshape(len(numbers), len(self._parameters))
        )

    @cached_property
    def _all(self) -> ConfigFeatures:
        if self._listed is None:
            raise ArgumentError(f"the {self.size:,} combinations of a space cannot be listed")
        return self._packed(self._listed)

    def _packed(self, places: np.ndarray) -> ConfigFeatures:
        columns = {
            parameter.name: parameter.numbers[column]
            for parameter, column in zip(self._parameters, places.T, strict=True)
        }
        values = np.stack([columns[name] for name in sorted(columns)], axis=1)
        return ConfigFeatures(values[:, None, :])


def _combinations(
    lists: list[Parameter], bounds: list[Bound], functions: list[Function]
) -> np.ndarray | None:
    """Returns the places of all combinations, the last parameter changing fastest; None if they are
    too many to list."""
    sizes = [len(parameter.values) for parameter in lists]
    if prod(sizes) > (MAX_COMBINATIONS if functions else MAX_CONFIGURATIONS):
        return None
    if not bounds and not functions:
        return np.indices(sizes, np.uint32).reshape(len(sizes), -1).T.copy()
    # Constraints are Python functions: a generator, since most combinations may be impossible.
    names = [parameter.name for parameter in lists]
    every = zip(product(*map(range, sizes)), product(*(each.values for each in lists)), strict=True)
    possible = [
        places
        for places, values in every
        if _is_possible(dict(zip(names, values, strict=True)), lists, bounds, functions)
    ]
    if len(possible) > MAX_CONFIGURATIONS:
        return None
    return np.array(possible, np.uint32).reshape(-1, len(sizes))


def _is_possible(
    configuration: dict[str, Value],
    lists: Sequence[Parameter],
    bounds: Sequence[Bound],
    functions: Sequence[Function],
) -> bool:
    if bounds:
        numbers = {
            each.name: float(each.numbers[each.place(configuration[each.name])]) for each in lists
        }
        if not all(bound.allows(numbers) for bound in bounds):
            return False
    try:
        return all(function(configuration) for function in functions)
    except Exception as error:  # the caller's function may raise anything
        raise ArgumentError(f"a constraint failed for {configuration}: {error!r}") from error


def _constraints_of(
    constraints: object, lists: list[Parameter]
) -> tuple[list[Bound], list[Function]]:
    if constraints is None:
        return [], []
    is_one = callable(constraints) or isinstance(constraints, str)
    given = [constraints] if is_one else several(constraints, "constraints", _TESTS)
    texts = {each.name: any(isinstance(one, str) for one in each.values) for each in lists}
    bounds: list[Bound] = []
    functions: list[Function] = []
    for number, constraint in enumerate(given):
        if isinstance(constraint, str):
            bounds += bounds_of(constraint, texts)
        elif callable(constraint):
            functions.append(constraint)
        else:
            raise wrong(f"constraints[{number}]", constraint, _TESTS)
    return bounds, functions


_TESTS = "texts, or functions of a configuration"


def _row(config: object, number: int) -> dict[str, Value]:
    if not isinstance(config, Mapping):
        raise wrong(f"configs[{number}]", config, "a configuration")
    if not config:
        raise ArgumentError(f"configs[{number}] has no parameters")
    return {text(name, "the parameter"): value_of(value, name) for name, value in config.items()}


def _sorted_parameter(name: str, values: list[Value]) -> Parameter:
    try:
        ordered = sorted(value for value in set(values) if value is not None)
    except TypeError as error:  # text and numbers have no order
        raise ArgumentError(f"the parameter {name!r} has text beside numbers") from error
    return Parameter(name, (*ordered, *([None] if None in values else [])))
