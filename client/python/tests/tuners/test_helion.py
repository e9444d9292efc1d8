"""The adapter of Helion, with its real search. Times are injected, since there is no GPU."""

import csv
import json
import re
import time

import pytest
from fake_server import fake_server

from hlorank import Client, DecisionKey

helion = pytest.importorskip(
    "helion", reason="helion is not installed: `make test-train` has it, and torch"
)

import helion.language as hl  # noqa: E402
import torch  # noqa: E402
from helion.autotuner import cache_classes, local_cache  # noqa: E402
from helion.autotuner.benchmark_provider import LocalBenchmarkProvider  # noqa: E402
from helion.runtime.settings import default_autotuner_fn  # noqa: E402

from hlorank.tuners.helion import Autotuner, _entry, read_log  # noqa: E402

INPUTS = (torch.zeros(256, 256), torch.zeros(256, 256))
COUNT = 12
"""Configurations of a random search."""


def milliseconds(config):
    m, n, k = config.block_sizes
    return 0.01 + abs(m - 64) / 1e3 + abs(n - 32) / 1e3 + abs(k - 32) / 1e4 + config.num_warps / 1e2


def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    _, n = y.size()
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc
    return out


MEASURED = []
"""The configurations that Helion measured."""


def prepare(patch, _=None):
    """Injects times; large tiles fail."""

    def benchmark(self, config, fn, **options):
        MEASURED.append(config)
        return milliseconds(config) if max(config.block_sizes) < 256 else float("inf")

    MEASURED.clear()
    patch.setattr(LocalBenchmarkProvider, "_benchmark_function", benchmark)
    # Helion's caches know no key of a CPU.
    patch.setitem(cache_classes, "none", lambda search, **options: search)
    patch.setenv("HELION_AUTOTUNER", "RandomSearch")


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    prepare(monkeypatch)
    return MEASURED


def bound(autotuner, seed=0, inputs=INPUTS, **settings):
    defaults = {
        "autotuner_fn": autotuner,
        "autotune_cache": "none",
        "autotune_baseline_fn": lambda x, y: x @ y,
        "autotune_accuracy_check": False,
        "autotune_precompile": None,
        "autotune_benchmark_subprocess": False,
        "autotune_progress_bar": False,
        "autotune_random_seed": seed,
        "autotune_log_level": 0,
    }
    return helion.kernel(matmul, static_shapes=True, **(defaults | settings)).bind(inputs)


adapter = Autotuner
TUNES, DECIDED = COUNT, 0
_SPEC = bound(default_autotuner_fn).config_spec
_OTHER = _SPEC.normalized_config(helion.Config(block_sizes=[32, 32, 32], num_warps=4))
OTHER = _OTHER.to_json().encode(), dict(_OTHER)
DEFAULT = dict(_SPEC.default_config())
MISFIT = json.dumps({"block_sizes": [7, 7, 7], "num_warps": 99}).encode()


def tune(adapter, key, fails=False):
    """As in the tests of all adapters."""
    MEASURED.clear()
    inputs = (torch.zeros(256 + 64 * key, 256), torch.zeros(256, 256))
    kernel = bound(adapter, inputs=inputs)
    if not fails:
        used = kernel.autotune(inputs, count=COUNT)
        return len(MEASURED), dict(used)
    with pytest.MonkeyPatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LocalBenchmarkProvider, "_benchmark_function", interrupted)
        kernel.autotune(inputs, count=COUNT)


def interrupted(self, config, fn, **options):
    raise KeyboardInterrupt


def test_the_second_user_begins_with_what_the_first_found(measured, client):
    first = bound(Autotuner(client, "H100"))
    best = first.autotune(INPUTS, count=COUNT)
    measured.clear()
    autotuner = Autotuner(client, "H100", top_k=4)
    second = bound(autotuner, seed=1)
    assert autotuner.seeds(second, INPUTS)[0] == best
    found = second.autotune(INPUTS, count=COUNT)
    # Helion measures its default first.
    assert milliseconds(measured[1]) == milliseconds(best)
    assert milliseconds(found) <= milliseconds(best)
    assert second.settings.autotune_seed_configs is None, "settings are as they were"


def test_seeds_of_the_kernel_stay(client, measured):
    own = helion.Config(block_sizes=[128, 128, 64], num_warps=8)
    bound(Autotuner(client, "own seeds"), autotune_seed_configs=own).autotune(INPUTS, count=COUNT)
    assert measured[1].block_sizes == own.block_sizes


@pytest.fixture
def logged(tmp_path):
    """A kernel that was tuned without an adapter, its best configuration, and Helion's log."""
    base = tmp_path / "log"
    kernel = bound(default_autotuner_fn, autotune_log=str(base), autotune_log_details=True)
    return kernel, kernel.autotune(INPUTS, count=COUNT), base


def test_a_log_becomes_measurements(client, measured, logged):
    kernel, best, base = logged
    (run,) = read_log(base)
    assert run.configs == measured
    failed = [max(config.block_sizes) >= 256 for config in run.configs]
    assert [result.failure == "compile" for result in run.results] == failed
    autotuner = Autotuner(client, "from a log")
    assert autotuner.seeds(kernel, INPUTS) == []
    autotuner.report_log(kernel, base)
    assert autotuner.seeds(kernel, INPUTS)[0] == best


def test_only_states_of_a_configuration_are_its_failures(logged):
    _, _, base = logged
    (before,) = read_log(base)
    with base.with_suffix(".csv").open() as lines:
        rows = list(csv.DictReader(lines))
    ran = next(row for row in rows if row["status"] == "ok")
    # Another process failed, nothing was measured, and a failure that an equal source repaired.
    states = ("peer_compilation_fail", "filtered", "source_rejected", "error")
    with base.with_suffix(".csv").open("a") as lines:
        writer = csv.DictWriter(lines, ran)
        writer.writerows(ran | {"status": state, "perf_ms": ""} for state in states)
    assert read_log(base) == [before]


def test_times_of_several_inputs_are_not_those_of_one(client, logged):
    kernel, _, base = logged
    path = base.with_suffix(".meta.jsonl")
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"input_shapes": f"[{record['input_shapes']}]"}))
    Autotuner(client, "several inputs").report_log(kernel, base)
    assert not client.list_measurements("several inputs").graphs


@pytest.fixture
def cached(monkeypatch, tmp_path):
    """Helion's own cache, in a folder of the test, as on a GPU."""
    monkeypatch.setenv("HELION_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(local_cache, "extract_device", lambda args: torch.device("mps"))
    monkeypatch.setattr(local_cache, "get_device_name", lambda device: "a GPU")


def tuned(autotuner, seed, cache="LocalAutotuneCache"):
    """What Helion finds, also in a cache of its own, and how many it measured."""
    MEASURED.clear()
    kernel = bound(autotuner, seed, autotune_cache=cache)
    return kernel.autotune(INPUTS, count=COUNT, force=False), len(MEASURED)


def forget():
    """Moves Helion's own cache away."""
    folder = local_cache.get_helion_cache_dir()
    if folder.exists():
        folder.rename(f"{folder}.{time.monotonic()}")


def test_what_is_decided_replaces_the_result_also_in_helions_cache(client, cached):
    first, count = tuned(Autotuner(client, "decided", decide=True), 0)
    assert count == COUNT
    assert tuned(Autotuner(client, "decided", decide=True), 1) == (first, 0)
    # Another rank was first: what this one found is used by nobody.
    loser = Autotuner(client, "lost", decide=True)
    agree = loser.agree

    def late(key, own, *rest):
        client.propose(DecisionKey("helion", key, "lost"), first.to_json().encode())
        return agree(key, own, *rest)

    loser.agree = late
    forget()
    assert tuned(loser, 2) == (first, COUNT)
    assert tuned(default_autotuner_fn, 3) == (first, 0), "Helion's own cache has the decision"
    with Client("127.0.0.1:1") as client, pytest.warns(UserWarning, match="hlorank"):
        away = Autotuner(client, "decided", decide=True, timeout=0.5)
        assert tuned(away, 4) == (first, 0), "also without the server"


def test_two_variables_share_what_helion_found_with_processes_that_start_later(
    store, cached, monkeypatch, client
):
    def shared(seed):
        return tuned(default_autotuner_fn, seed, "RemoteAutotuneCache")

    monkeypatch.setenv("HELION_REMOTE_CACHE_BACKEND", "hlorank.tuners.helion.RemoteCache")
    monkeypatch.setenv("HLORANK_ENDPOINT", store)
    first, count = shared(0)
    assert count == COUNT
    forget()
    assert shared(1) == (first, 0)
    targets = {each.key.target for each in client.list_decisions("helion").decisions}
    assert any(re.match("helion=.*;torch=.*;triton=", target) for target in targets)
    with fake_server(b"\xff\xff") as server:
        monkeypatch.setenv("HLORANK_ENDPOINT", server.address)
        forget()
        with pytest.warns(UserWarning, match="hlorank"):
            assert shared(2)[1] == COUNT


@pytest.mark.parametrize("value", [b"{}", b'{"config": 3}', b'{"config": "not JSON"}', b"[]"])
def test_an_entry_that_helion_cannot_read_is_none(value):
    assert _entry(value) is None
