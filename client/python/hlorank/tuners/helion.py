"""Autotuning with Helion that begins with what was measured before."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from helion import Config, exc
from helion.autotuner.base_search import BaseAutotuner
from helion.runtime.settings import default_autotuner_fn

from hlorank import Result
from hlorank.tuners.helion_log import Run, identity_of, read_log, space_of
from hlorank.tuners.proposals import Proposals
from hlorank.tuners.rows import Row, number_of

if TYPE_CHECKING:
    from helion.runtime.kernel import BoundKernel

_CANDIDATES = 256
"""How many random configurations a server may propose beside those that were measured."""
_MISFITS = (KeyError, ValueError, TypeError, AssertionError, exc.InvalidConfig)
"""What Helion raises for the configuration of another version of a kernel."""


class Autotuner(Proposals):
    """An ``autotuner_fn`` that proposes the first configurations, and reports all times.

    >>> autotuner = hlorank.tuners.helion.Autotuner(Client("127.0.0.1:7070"), "H100, Helion 1.5")
    >>> @helion.kernel(autotuner_fn=autotuner)
    ... def matmul(x, y): ...

    Helion's own search goes on from the proposals, which join its ``autotune_seed_configs``. A
    kernel is known by its name and its source, and what is tuned by shapes and types. It takes the
    arguments of ``Proposals``.
    """

    def __call__(
        self, bound_kernel: "BoundKernel", args: Sequence[object], **kwargs: object
    ) -> BaseAutotuner:
        """Returns Helion's search; ``kwargs`` are its arguments."""
        return _SeededSearch(self, bound_kernel, args, kwargs)

    def __deepcopy__(self, memo: object) -> "Autotuner":
        """Returns itself, since Helion copies its settings and a connection has no copy."""
        return self

    def seeds(self, bound_kernel: "BoundKernel", args: Sequence[object]) -> list[Config]:
        """Returns the configurations to begin with, fastest first; none if nothing is known."""
        rows = _Rows(bound_kernel)
        space = space_of(identity_of(bound_kernel, args))
        known = map(rows.config, self.measured(*space, rows.parameters))
        candidates = [each for each in known if each is not None] + rows.drawn
        best = self.best(*space, [*map(rows.row, candidates)])
        return [candidates[number] for number in best]

    def report_log(self, bound_kernel: "BoundKernel", base: str | Path) -> None:
        """Reports the runs of a kernel in the files of ``HELION_AUTOTUNE_LOG=base``.

        Only logs with ``HELION_AUTOTUNE_LOG_DETAILS=1`` have the configurations.
        """
        rows = _Rows(bound_kernel)
        name = bound_kernel.kernel.name
        for run in read_log(base):
            if run.identity.kernel_name == name:
                self.report(*space_of(run.identity), rows.fitting(run))


class _SeededSearch(BaseAutotuner):
    def __init__(
        self,
        server: Autotuner,
        kernel: "BoundKernel",
        args: Sequence[object],
        options: Mapping[str, object],
    ):
        self._server = server
        self._kernel = kernel
        self._args = args
        self._options = options

    def autotune(self, *, skip_cache: bool = False) -> Config:
        settings = self._kernel.settings
        given = settings.autotune_seed_configs or ()
        given = [given] if isinstance(given, Config | dict) else [*given]
        seeds = given + self._server.seeds(self._kernel, self._args)
        with TemporaryDirectory() as folder:
            base = settings.autotune_log or str(Path(folder) / "log")
            changed = {"autotune_log": base, "autotune_log_details": True}
            try:
                with _changed(settings, changed | {"autotune_seed_configs": seeds or None}):
                    search = default_autotuner_fn(self._kernel, self._args, **self._options)
                    return search.autotune(skip_cache=skip_cache)
            finally:
                self._server.report_log(self._kernel, base)


class _Rows:
    """The configurations of a kernel as rows of numbers, and back."""

    def __init__(self, kernel: "BoundKernel"):
        self._generation = kernel.config_spec.create_config_generation(
            overrides=kernel.settings.autotune_config_overrides or None,
            advanced_controls_files=kernel.settings.autotune_search_acf or None,
        )
        self.drawn: list[Config] = self._generation.random_population(_CANDIDATES)
        self._template = self._generation.default_flat()
        values = zip(*(self._values(each) for each in self.drawn), strict=True)
        self._texts = [{number_of(value): value for value in column} for column in values]

    @property
    def parameters(self) -> list[str]:
        return [_parameter(place) for place in range(len(self._texts))]

    def row(self, config: Config) -> dict[str, float]:
        values = self._values(config)
        return {_parameter(place): number_of(value) for place, value in enumerate(values)}

    def fitting(self, run: Run) -> Iterator[tuple[Row, Result]]:
        for config, result in zip(run.configs, run.results, strict=True):
            with suppress(*_MISFITS):
                yield self.row(config), result

    def config(self, row: Mapping[str, float]) -> Config | None:
        """Returns the configuration of a row; None if it has a value that Helion did not draw."""
        numbers = zip(self._texts, (row[name] for name in self.parameters), strict=True)
        with suppress(*_MISFITS):
            values = iter([_value(texts, number) for texts, number in numbers])
            return self._generation.unflatten([_filled(each, values) for each in self._template])
        return None

    def _values(self, config: Config) -> list[object]:
        return list(_leaves(self._generation.flatten(config)))


def _parameter(place: int) -> str:
    return f"p{place:03d}"


def _value(values: Mapping[float, object], number: float) -> object:
    if number in values:
        return values[number]
    if all(isinstance(each, int) and not isinstance(each, bool) for each in values.values()):
        return int(number)
    raise KeyError(number)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, list | tuple):
        for each in value:
            yield from _leaves(each)
    else:
        yield value


def _filled(template: object, values: Iterator[object]) -> object:
    if isinstance(template, list | tuple):
        return [_filled(each, values) for each in template]
    return next(values)


@contextmanager
def _changed(settings: object, values: Mapping[str, object]) -> Iterator[None]:
    before = {name: getattr(settings, name) for name in values}
    for name, value in values.items():
        setattr(settings, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(settings, name, value)
