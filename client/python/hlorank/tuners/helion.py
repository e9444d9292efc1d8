"""Autotuning with Helion that begins with what was measured before."""

import csv
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import torch
from helion import Config, exc
from helion.autotuner.base_cache import AutotuneCacheBase
from helion.autotuner.base_search import BaseAutotuner
from helion.autotuner.metrics import KernelMetadata
from helion.autotuner.remote_cache import RemoteCacheBackend
from helion.runtime.settings import default_autotuner_fn

from hlorank import Client, Result
from hlorank.tuners.decider import SharedCache, key_of, object_of
from hlorank.tuners.proposals import Proposals, Row, number_of, result_of

if TYPE_CHECKING:
    from helion.runtime.kernel import BoundKernel

_FAILURES = {"error": "compile", "timeout": "timeout", "accuracy_error": "wrong_result"}
"""What Helion's states say of a configuration. The others say nothing of it: that another process
of a distributed kernel failed, or that it was not measured."""
_TIMES = ("ok", "deduplicated")
_IDENTITY = ("kernel_name", "kernel_source", "input_shapes", "dtypes", "settings")


@dataclass(frozen=True)
class Run:
    """The measurements of one kernel on inputs of one kind."""

    identity: KernelMetadata
    configs: list[Config]
    results: list[Result]
    """What came of each"""


def read_log(base: str | Path) -> list[Run]:
    """Reads ``base.csv`` and ``base.meta.jsonl``; none if Helion found its result in a cache."""
    runs: dict[str, Run] = {}
    configs: dict[str, dict[str, Config]] = {}
    for line in _lines(Path(base).with_suffix(".meta.jsonl")):
        record = json.loads(line)
        identity = KernelMetadata(**{name: record[name] for name in _IDENTITY})
        runs.setdefault(record["run_id"], Run(identity, [], []))
        found = {key: Config.from_dict(each) for key, each in record["configs"].items()}
        configs.setdefault(record["run_id"], {}).update(found)
    for row in csv.DictReader(_lines(Path(base).with_suffix(".csv"))):
        config = configs.get(row["run_id"], {}).get(row["config_id"])
        result = _result(row)
        if config is not None and result is not None:
            runs[row["run_id"]].configs.append(config)
            runs[row["run_id"]].results.append(result)
    return [_repaired(run) for run in runs.values()]


def _repaired(run: Run) -> Run:
    """Drops failures of configurations that have a time, too: Helion measured an equal source."""
    pairs = list(zip(run.configs, run.results, strict=True))
    ran = [config for config, result in pairs if result.failure is None]
    kept = [(one, result) for one, result in pairs if result.failure is None or one not in ran]
    return Run(run.identity, [one for one, _ in kept], [result for _, result in kept])


def identity_of(kernel: "BoundKernel", args: Sequence[object]) -> KernelMetadata:
    """Returns what Helion's log says of a run, so that runs and logs share measurements."""
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    source = ""
    with suppress(OSError):
        source = kernel.kernel.kernel_source()
    return KernelMetadata(
        kernel_name=kernel.kernel.name,
        kernel_source=source,
        input_shapes=str([tuple(each.shape) for each in tensors]),
        dtypes=str([str(each.dtype) for each in tensors]),
        settings=kernel.settings.to_dict(),
    )


def space_of(identity: KernelMetadata) -> tuple[str, str]:
    """Returns the name of a space and its instance; the device is the target's."""
    instance = f"{identity.input_shapes} {identity.dtypes} {identity.run_id[:12]}"
    return f"helion.{identity.kernel_name}", instance


def _result(row: Mapping[str, str]) -> Result | None:
    """Returns what a line says; None for a state that says nothing of the configuration."""
    if row["status"] in _TIMES and row["perf_ms"]:
        return result_of(float(row["perf_ms"]) / 1e3)
    failure = _FAILURES.get(row["status"])
    return None if failure is None else Result(failure=failure)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


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
    arguments of ``Proposals``. With ``decide=True``, a decided configuration is taken without a
    search, and what the server decides replaces the result of one, also in Helion's own cache.
    """

    namespace = "helion"

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

        Only logs with ``HELION_AUTOTUNE_LOG_DETAILS=1`` have the configurations. Runs of
        ``autotune_multi`` are left out: their times are means over inputs, or ratios.
        """
        rows = _Rows(bound_kernel)
        name = bound_kernel.kernel.name
        for run in read_log(base):
            is_of_several = run.identity.input_shapes.startswith("[[")
            if run.identity.kernel_name == name and not is_of_several:
                self.report(*space_of(run.identity), rows.fitting(run))


class _Cache(SharedCache):
    namespace = "helion"


class RemoteCache(RemoteCacheBackend):
    """Helion's remote cache, for programs that are left as they are.

    ``HELION_AUTOTUNE_CACHE=RemoteAutotuneCache`` and
    ``HELION_REMOTE_CACHE_BACKEND=hlorank.tuners.helion.RemoteCache`` set it. The server is that of
    ``HLORANK_ENDPOINT``, and the token that of ``HLORANK_TOKEN``. Helion's keys have the device;
    the target has the versions that they lack. It is a ``SharedCache``: use an ``Autotuner`` with
    ``decide=True`` for processes that start together.
    """

    def __init__(self) -> None:
        address = os.environ.get("HLORANK_ENDPOINT") or "127.0.0.1:7070"
        client = Client(address, token=os.environ.get("HLORANK_TOKEN") or None)
        installed = {name: _version(name) for name in ("helion", "torch", "triton")}
        target = ";".join(f"{name}={version}" for name, version in installed.items())
        self._cache = _Cache(client, target, _entry)

    def get(self, key: str) -> str | None:
        """Returns the entry that is decided for a key of Helion."""
        found = self._cache.get(key)
        return None if found is None else found.decode()

    def put(self, key: str, data: str) -> None:
        """Proposes an entry."""
        self._cache.put(key, data.encode())


def _version(package: str) -> str:
    with suppress(PackageNotFoundError):
        return version(package)
    return "none"


def _entry(value: bytes) -> bytes | None:
    """Returns an entry that Helion can read; None if it would raise."""
    with suppress(*_MISFITS):
        Config.from_json((object_of(value) or {})["config"])
        return value
    return None


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
        server, kernel = self._server, self._kernel
        fingerprint = kernel.config_spec.cache_fingerprint_hash()
        key = key_of(*space_of(identity_of(kernel, self._args)), fingerprint)
        default: Config = kernel.config_spec.default_config()
        with server.giving_back():
            state, config = server.decided(key, self._read)
            if state == "decided" and config is not None:
                return self._stored(config)
            if state == "away":
                return self._of_all(key, lambda: [self._kept(skip_cache) or default])[0]
            own = self._search(skip_cache, key)
            if state == "off":
                return own
            agreed = server.agree(key, own, own.to_json().encode(), self._read)
        # Else the next start without the server would read what this process found.
        return default if agreed is None else self._stored(agreed)

    def _read(self, value: bytes) -> Config | None:
        """Returns the configuration of a decision; None if it does not fit the kernel."""
        found = object_of(value)
        with suppress(*_MISFITS):
            if found is not None:
                spec = self._kernel.config_spec
                config: Config = spec.normalized_config(Config.from_dict(found))
                spec.create_config_generation().flatten(config)
                return config
        return None

    def _stored(self, config: Config) -> Config:
        """Writes a configuration into Helion's own cache, if it has one for the kernel."""
        cache = self._tuner()
        if isinstance(cache, AutotuneCacheBase):
            with suppress(OSError):
                cache.put(config)
        return config

    def _kept(self, skip_cache: bool) -> Config | None:
        """Returns what Helion's own cache has, such as an earlier decision."""
        cache = self._tuner()
        if isinstance(cache, AutotuneCacheBase) and not skip_cache:
            with suppress(*_MISFITS):
                return cache.get()
        return None

    def _tuner(self) -> BaseAutotuner:
        return default_autotuner_fn(self._kernel, self._args, **self._options)

    def _of_all(self, key: bytes, configs: Callable[[], Sequence[Config]]) -> list[Config]:
        """Returns the configurations of the leader of a process group, which has others drawn."""
        texts = self._server.from_leader(key, lambda: [each.to_json() for each in configs()])
        return [Config.from_json(text) for text in texts]

    def _search(self, skip_cache: bool, key: bytes) -> Config:
        settings = self._kernel.settings
        given = settings.autotune_seed_configs or ()
        given = [given] if isinstance(given, Config | dict) else [*given]
        proposed = self._of_all(key, lambda: self._server.seeds(self._kernel, self._args))
        seeds = given + proposed
        with TemporaryDirectory() as folder:
            base = settings.autotune_log or str(Path(folder) / "log")
            changed = {"autotune_log": base, "autotune_log_details": True}
            try:
                with _changed(settings, changed | {"autotune_seed_configs": seeds or None}):
                    found: Config = self._tuner().autotune(skip_cache=skip_cache)
                    return found
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
