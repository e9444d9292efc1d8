"""What adapters share whose tuners take a shorter list of configurations instead of suggestions."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from itertools import chain, islice, zip_longest

import numpy as np

from hlorank import Client, ConfigFeatures, Experience, Fallback, Graph, Kept, Result
from hlorank.checks.arguments import whole_number
from hlorank.configurations.adapt import LONGEST, SHORTEST, Adapt
from hlorank.spaces.space import Value, is_finite
from hlorank.tuners.decider import Decider
from hlorank.wire import defaults
from hlorank.wire.defaults import NAME_CHARACTERS, TARGET_BYTES
from hlorank.worker.agreement import Group, OnAway

Row = Mapping[str, float]
"""A configuration as numbers, by the names of its parameters."""

_EXACT = 1 << 24
"""Whole numbers up to here are exact as f32."""


def row_of(parameters: Mapping[str, object]) -> dict[str, float]:
    """Returns the numbers of parameters."""
    return {name: number_of(value) for name, value in parameters.items()}


def number_of(value: object) -> float:
    """Returns a number as f32, -1 for None, and a code of 24 bits of anything else.

    The places of texts in a list would differ between users with different lists.
    """
    if value is None:
        return -1.0
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, int | float) and abs(plain) <= _EXACT:
        return float(np.float32(plain))
    return float(int.from_bytes(blake2b(str(value).encode(), digest_size=3).digest()))


def column_of(values: Iterable[object]) -> list[Value]:
    """Returns what a ``Space`` has for the different values of a parameter, in their order.

    Texts, and numbers that f32 can tell apart, stay as they are. Values of a tuner may also be
    None, numbers beside text, or infinity: all values of the parameter count as text then.
    """
    plain = [value.item() if isinstance(value, np.generic) else value for value in values]
    texts = [value for value in plain if isinstance(value, str)]
    numbers = [value for value in plain if isinstance(value, int | float) and is_finite(value)]
    if len(texts) == len(plain):
        return [*texts]
    if len({float(np.float32(number)) for number in numbers}) == len(plain):
        return [*numbers]
    return [repr(value) for value in plain]


def result_of(seconds: float, failure: str = "compile", repeats: int = 1) -> Result:
    """Returns a time, or a failure if it cannot be one.

    Tuners write infinity, NaN, 0, 1e9 or 1e10 seconds for what did not run.
    """
    if SHORTEST <= seconds < LONGEST:
        return Result(float(seconds), repeats=repeats)
    return Result(failure=failure)


def instance_of(text: str) -> str:
    """Returns a text as an instance: a long one by its digest, so that no two become one."""
    encoded = text.encode()
    return text if len(encoded) <= TARGET_BYTES else blake2b(encoded).hexdigest()


def graph_of_rows(name: str, instance: str, columns: Sequence[str]) -> Graph:
    """Returns what stands for the rows of a kernel: a feature set with a column a parameter."""
    printable = name.encode("ascii", "replace").decode()[:NAME_CHARACTERS]
    # Kernels whose names are cut or replaced to the same characters are told apart by the instance.
    whole = instance if printable == name else f"{name} {instance}"
    return Graph.from_feature_set(printable, config_columns=columns, instance=instance_of(whole))


def configurations_of_rows(columns: Sequence[str], rows: Sequence[Row]) -> ConfigFeatures:
    """Returns rows as configurations of their graph; what a row lacks is None."""
    values = np.array([_values(columns, row) for row in rows], np.float32)
    return ConfigFeatures(values[:, None, :])


def _values(columns: Sequence[str], row: Row) -> tuple[float, ...]:
    return tuple(row.get(column, number_of(None)) for column in columns)


def _columns_of(rows: Iterable[Row]) -> tuple[str, ...]:
    return tuple(sorted({column for row in rows for column in row}))


def digest(source: str) -> str:
    """Returns what tells versions of a kernel's source apart."""
    return blake2b(source.encode(), digest_size=6).hexdigest()


class Proposals(Decider):
    """Proposes the rows that are fastest by what was measured; threads may share one.

    Args:
        client: A client of the server, which needs no model but has to keep measurements.
        target: What run times are measured on: hardware, compiler and flags. Never mix targets.
        top_k: How many configurations of a space to propose.
        other_targets: At most 16 targets whose stored measurements say what to expect on this one.
        all_other_targets: Whether to use all other targets that have measurements.
        decide, on_away, group: As of a ``Decider``. With ``default``, a process uses the default of
            what is tuned while the server is away.
        timeout: Maximum seconds of a call, retries included.
        fallback: What goes on if the server is away.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        top_k: int = 16,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        decide: bool = False,
        on_away: OnAway = "default",
        group: Group | None = None,
        timeout: float | None = defaults.ADAPTER_TIMEOUT,
        fallback: Fallback | None = None,
    ):
        self._top_k = whole_number(top_k, "top_k", least=1)
        Adapt(target, other_targets=other_targets, all_other_targets=all_other_targets)
        self._kept = Kept(target)
        ways = {"wait": "tuning waits for it", "default": "defaults are used until it is back"}
        way = ways.get(on_away) if decide else None
        fallback = fallback or Fallback(way or "tuning goes on without it")
        super().__init__(
            client,
            target,
            decide=decide,
            on_away=on_away,
            group=group,
            timeout=timeout,
            fallback=fallback,
        )
        self._experiences: dict[tuple[str, str, tuple[str, ...]], Experience[Row]] = {}
        self._experience = partial(
            Experience[Row],
            client,
            kept=self._kept,
            other_targets=other_targets,
            all_other_targets=all_other_targets,
            timeout=timeout,
            fallback=fallback,
        )

    def best(self, name: str, instance: str, rows: Sequence[Row]) -> list[int]:
        """Returns the numbers of at most ``top_k`` rows, fastest first; none if nothing is known.

        Every other one is the next of those measured, and the others are the next of those
        predicted. Equal rows count once.

        Args:
            name: The name of the space.
            instance: What is tuned, if it is one of several with this space.
            rows: The configurations; a parameter that some of them lack is None for these.
        """
        columns = _columns_of(rows)
        experience = self._of(name, instance, columns)
        values = [_values(columns, row) for row in rows]
        # Backwards, so that the first of equal rows stays.
        first = {value: place for place, value in reversed([*enumerate(values)])}
        places = sorted(first.values())
        distinct = configurations_of_rows(columns, [rows[place] for place in places])
        ranking = experience.rank(distinct, min(2 * self._top_k, len(places)))
        if ranking is None or ranking.adaptation is None or not ranking.adaptation.rests_on:
            return []
        times = experience.kept_times(rows_of)
        # What is learned may smooth over a row that is fast for no visible reason.
        known = [first[value] for value in times if value in first and times[value] is not None]
        predicted = [places[number] for number in ranking.best.tolist()]
        both = chain.from_iterable(zip_longest(known, predicted))
        # A failure may look fast to what is learned from its neighbours.
        failed = {first[value] for value in times if value in first and times[value] is None}
        ran = (place for place in both if place is not None and place not in failed)
        return list(islice(dict.fromkeys(ran), self._top_k))

    def measured(
        self, name: str, instance: str, parameters: Iterable[str]
    ) -> list[dict[str, float]]:
        """Returns the rows of a space that ran on the target, fastest first."""
        columns = tuple(sorted(parameters))
        times = self._of(name, instance, columns).kept_times(rows_of)
        return [
            dict(zip(columns, values, strict=True))
            for values, seconds in times.items()
            if seconds is not None
        ]

    def report(self, name: str, instance: str, measured: Iterable[tuple[Row, Result]]) -> None:
        """Reports what came of measuring rows; if the server is away, with a later report."""
        pairs = list(measured)
        if not pairs:
            return
        rows = [row for row, _ in pairs]
        columns = _columns_of(rows)
        # What was measured of a list may lack parameters that the list has.
        lists = (own for kernel, of, own in self._experiences if (kernel, of) == (name, instance))
        columns = next((own for own in lists if {*own} >= {*columns}), columns)
        self._of(name, instance, columns).add(rows, [result for _, result in pairs])

    def flush(self) -> int:
        """Sends the reports that were not sent yet; returns how many measurements are left."""
        for experience in self._experiences.values():
            experience.report()
        return sum(experience.unreported for experience in self._experiences.values())

    def _of(self, name: str, instance: str, columns: tuple[str, ...]) -> Experience[Row]:
        key = name, instance, columns
        if key not in self._experiences:
            graph = graph_of_rows(name, instance, columns)
            convert = partial(configurations_of_rows, columns)
            self._experiences[key] = self._experience(graph, convert)
        return self._experiences[key]


def rows_of(configurations: ConfigFeatures) -> list[tuple[float, ...]]:
    """Returns the numbers of configurations of one node."""
    return [tuple(row) for row in configurations.values()[:, 0, :].tolist()]
