"""The adapter of Helion, with its real search. Times are injected, since there is no GPU."""

import csv
import json
import warnings

import pytest
from servers import run_empty_server, run_server_that_keeps_nothing

from hlorank import Client

helion = pytest.importorskip(
    "helion", reason="helion is not installed: `make test-train` has it, and torch"
)

import helion.language as hl  # noqa: E402
import torch  # noqa: E402
from helion.autotuner import cache_classes  # noqa: E402
from helion.autotuner.benchmark_provider import LocalBenchmarkProvider  # noqa: E402

from hlorank.tuners.helion import (  # noqa: E402
    Autotuner,
    read_log,
)

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


@pytest.fixture(autouse=True)
def measured(monkeypatch):
    """The configurations that Helion measures; large tiles fail."""
    found = []

    def benchmark(self, config, fn, **options):
        found.append(config)
        return milliseconds(config) if max(config.block_sizes) < 256 else float("inf")

    monkeypatch.setattr(LocalBenchmarkProvider, "_benchmark_function", benchmark)
    # Helion's caches know no key of a CPU.
    monkeypatch.setitem(cache_classes, "none", lambda search, **options: search)
    monkeypatch.setenv("HELION_AUTOTUNER", "RandomSearch")
    return found


def bound(autotuner, seed=0, **settings):
    settings |= {
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
    return helion.kernel(matmul, static_shapes=True, **settings).bind(INPUTS)


def test_the_second_user_begins_with_what_the_first_found(store, measured):
    with Client(store) as client:
        first = bound(Autotuner(client, "H100"))
        best = first.autotune(INPUTS, count=COUNT)
        measured.clear()
    with Client(store) as client:
        autotuner = Autotuner(client, "H100", top_k=4)
        second = bound(autotuner, seed=1)
        assert autotuner.seeds(second, INPUTS)[0] == best
        found = second.autotune(INPUTS, count=COUNT)
    # Helion measures its default first.
    assert milliseconds(measured[1]) == milliseconds(best)
    assert milliseconds(found) <= milliseconds(best)
    assert second.settings.autotune_seed_configs is None, "settings are as they were"


def test_seeds_of_the_kernel_stay(store, measured):
    own = helion.Config(block_sizes=[128, 128, 64], num_warps=8)
    with Client(store) as client:
        bound(Autotuner(client, "own seeds"), autotune_seed_configs=own).autotune(
            INPUTS, count=COUNT
        )
    assert measured[1].block_sizes == own.block_sizes


def test_a_log_becomes_measurements(store, tmp_path, measured):
    from helion.runtime.settings import default_autotuner_fn

    base = tmp_path / "log"
    kernel = bound(default_autotuner_fn, autotune_log=str(base), autotune_log_details=True)
    best = kernel.autotune(INPUTS, count=COUNT)
    (run,) = read_log(base)
    assert run.configs == measured
    failed = [max(config.block_sizes) >= 256 for config in run.configs]
    assert [result.failure == "compile" for result in run.results] == failed
    with Client(store) as client:
        autotuner = Autotuner(client, "from a log")
        assert autotuner.seeds(kernel, INPUTS) == []
        autotuner.report_log(kernel, base)
        assert autotuner.seeds(kernel, INPUTS)[0] == best


def test_only_states_of_a_configuration_are_its_failures(tmp_path, measured):
    from helion.runtime.settings import default_autotuner_fn

    base = tmp_path / "log"
    kernel = bound(default_autotuner_fn, autotune_log=str(base), autotune_log_details=True)
    kernel.autotune(INPUTS, count=COUNT)
    (before,) = read_log(base)
    with base.with_suffix(".csv").open() as lines:
        rows = list(csv.DictReader(lines))
    ran = next(row for row in rows if row["status"] == "ok")
    # Another process failed, nothing was measured, and a failure that an equal source repaired.
    states = ("peer_compilation_fail", "filtered", "source_rejected", "error")
    rows += [ran | {"status": state, "perf_ms": ""} for state in states]
    with base.with_suffix(".csv").open("w") as lines:
        writer = csv.DictWriter(lines, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    assert read_log(base) == [before]


def test_times_of_several_inputs_are_not_those_of_one(store, tmp_path, measured):
    from helion.runtime.settings import default_autotuner_fn

    base = tmp_path / "log"
    kernel = bound(default_autotuner_fn, autotune_log=str(base), autotune_log_details=True)
    kernel.autotune(INPUTS, count=COUNT)
    path = base.with_suffix(".meta.jsonl")
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"input_shapes": f"[{record['input_shapes']}]"}))
    with Client(store) as client:
        Autotuner(client, "several inputs").report_log(kernel, base)
        assert not client.list_measurements("several inputs").graphs


def test_a_server_that_keeps_nothing_is_said_once(tmp_path, measured):
    with run_server_that_keeps_nothing(tmp_path) as address, Client(address) as client:
        bound(Autotuner(client, "off")).autotune(INPUTS, count=COUNT)
    assert len(measured) == COUNT


def test_a_killed_server_costs_one_warning(tmp_path, measured):
    with run_empty_server(tmp_path) as server, Client(server.address) as client:
        autotuner = Autotuner(client, "H100", timeout=0.5)
        kernel = bound(autotuner)
        server.process.kill()
        server.process.wait()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            best = kernel.autotune(INPUTS, count=COUNT)
    assert len(measured) == COUNT
    assert milliseconds(best) == min(milliseconds(each) for each in measured)
    ours = [each for each in caught if "hlorank" in str(each.message)]
    assert len(ours) == 1
    assert autotuner.flush() == COUNT, "what was measured waits for the server"
