import itertools
import json
import math
import multiprocessing
import os
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest
from servers import REPOSITORY, run_empty_server, run_server_that_keeps_nothing

from hlorank import ArgumentError, Client, DecisionKey, Lease, Space

kernel_tuner = pytest.importorskip("kernel_tuner", reason="kernel_tuner is not installed")
from c_kernels import BLUR, KERNELS  # noqa: E402

from hlorank.tuners.kernel_tuner import Strategy  # noqa: E402

FAILED = "RuntimeFailedConfig"
LISTS = Path(os.environ.get("HLORANK_SHARED", REPOSITORY.parent / "shared")) / "data/gpu"
OPENCL = """
__kernel void add(__global float *c, __global const float *a, __global const float *b) {
  int first = get_global_id(0) * per_item;
  for (int i = first; i < first + per_item; i++) c[i] = a[i] + b[i];
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Kernel Tuner compiles in the working folder, and draws from the global generators."""
    monkeypatch.chdir(tmp_path)
    random.seed(0)
    np.random.seed(0)


@pytest.fixture
def client(store):
    with Client(store, timeout=10) as client:
        yield client


def stored(client, target):
    """The outcomes that the server keeps of a target: seconds, or how it failed."""
    outcomes = []
    for graph in client.list_measurements(target).graphs:
        pairs = zip(graph.seconds, graph.failures, strict=True)
        outcomes += [failure or seconds for seconds, failure in pairs]
    return outcomes


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.name)
def test_a_c_kernel_is_tuned_live(kernel, client):
    strategy = Strategy(client, f"live {kernel.name}")
    results, environment = kernel.tune(strategy=strategy, strategy_options={"max_fevals": 12})
    assert len(results) == 12
    assert len({tuple(result[name] for name in kernel.parameters) for result in results}) == 12
    fastest = min(result["time"] for result in results)
    assert environment["best_config"]["time"] == fastest
    times = [result["time"] / 1e3 for result in results]
    assert sorted(stored(client, f"live {kernel.name}")) == pytest.approx(sorted(times))


def a_leased_run(address, name, count):
    with Client(address, timeout=10) as client:
        strategy = Strategy(client, "leased", lease=Lease(name))
        results, _ = BLUR.tune(strategy=strategy, strategy_options={"max_fevals": count})
    return [tuple(result[name] for name in BLUR.parameters) for result in results]


def test_two_processes_with_leases_measure_nothing_twice(store):
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(in_a_process, a_leased_run, store, name, 8) for name in ("a", "b")]
        first, second = (set(run.result()) for run in runs)
    assert len(first) == len(second) == 8 and not first & second


def a_run(address, place, count):
    """A user's run in a process of its own; returns configurations and times in order."""
    kernel = KERNELS[place]
    with Client(address, timeout=10) as client:
        strategy = Strategy(client, "two users")
        results, _ = kernel.tune(strategy=strategy, strategy_options={"max_fevals": count})
    names = list(kernel.parameters)
    return [(tuple(result[name] for name in names), result["time"]) for result in results]


def test_the_second_user_begins_with_what_the_first_found(store):
    ratios = []
    for place in range(len(KERNELS)):
        found, begun = (in_a_process(a_run, store, place, count) for count in (20, 1))
        times = dict(found)
        [(configuration, _)] = begun
        # The first user's time of it, since another run has other noise.
        ratios.append(times.get(configuration, math.inf) / min(times.values()))
    assert np.median(ratios) <= 1.05, ratios


def in_a_process(function, *arguments):
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        return processes.apply(function, arguments)


def kill(server):
    server.process.kill()
    server.process.wait()


def names_a_fallback():
    return pytest.warns(UserWarning, match=r"hlorank: .*; genetic_algorithm goes on")


def test_a_server_that_is_away_costs_one_warning(tmp_path):
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:
        kill(server)
        with names_a_fallback() as warned:
            results, _ = BLUR.tune(
                strategy=Strategy(client, "away"), strategy_options={"max_fevals": 8}
            )
    assert len(results) == 8
    assert sum("hlorank" in str(each.message) for each in warned) == 1


def test_a_server_that_dies_costs_one_warning_and_the_run_goes_on_from_the_best(tmp_path):
    calls = iter(range(100))
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:

        def verify(answer, result, atol):
            if next(calls) == 5:  # the first configuration is verified twice, to warm up
                kill(server)
            return True

        with names_a_fallback() as warned:
            strategy = Strategy(client, "dies")
            results, _ = BLUR.tune(
                strategy=strategy, strategy_options={"max_fevals": 12}, verify=verify
            )
    assert len(results) == 12
    assert sum("hlorank" in str(each.message) for each in warned) == 1
    found = [[result[name] for name in BLUR.parameters] for result in results]
    times = [result["time"] for result in results[:5]]
    assert found[5] == found[times.index(min(times))]


def test_kernels_of_opencl_are_tuned_unchanged(client):
    pytest.importorskip("pyopencl", reason="pyopencl is not installed")
    first, second = (np.random.default_rng(0).random(1 << 16, np.float32) for _ in range(2))
    arguments = [np.zeros_like(first), first, second]
    results, _ = kernel_tuner.tune_kernel(
        "add",
        OPENCL,
        first.size,
        arguments,
        {"block_size_x": [16, 32, 64, 128], "per_item": [1, 2, 4]},
        grid_div_x=["block_size_x * per_item"],
        lang="OpenCL",
        answer=[first + second, None, None],
        strategy=Strategy(client, "pocl"),
        strategy_options={"max_fevals": 6},
        quiet=True,
    )
    assert len(results) == len(stored(client, "pocl")) == 6


def simulated(strategy, entries, **options):
    """Runs Kernel Tuner on a list of results of configurations, given by their values."""
    names = list(entries[0])[:-1]
    values = {name: sorted({entry[name] for entry in entries}, key=str) for name in names}
    known = {",".join(str(entry[name]) for name in names): entry for entry in entries}
    cache = {
        "device_name": "a list",
        "kernel_name": "listed",
        "problem_size": [8, 4],
        "tune_params_keys": names,
        "tune_params": values,
        "objective": "time",
        "cache": known,
    }

    # Kernel Tuner takes a lambda apart, and cannot read this one.
    def is_listed(one):
        return ",".join(str(one[name]) for name in names) in known

    Path("listed.json").write_text(json.dumps(cache))
    return kernel_tuner.tune_kernel(
        "listed",
        "__global__ void listed() {}",
        (8, 4),
        [],
        values,
        lang="CUDA",
        block_size_names=names[:1],
        restrictions=is_listed if len(known) < math.prod(map(len, values.values())) else None,
        strategy=strategy,
        simulation_mode=True,
        cache="listed.json",
        quiet=True,
        **options,
    )


LISTED = [{"tile": tile, "time": 1.0 + abs(tile - 5)} for tile in range(1, 9)]


def tuned_list(strategy, **options):
    """The tiles that a run measures, and the one that it ends with."""
    results, environment = simulated(strategy, LISTED, **options)
    return [result["tile"] for result in results], environment["best_config"]["tile"]


def test_what_one_run_found_is_all_that_another_one_measures(client):
    first, best = tuned_list(Strategy(client, "decided", decide=True))
    assert sorted(first) == list(range(1, 9)) and best == 5
    assert tuned_list(Strategy(client, "decided", decide=True)) == ([5], 5)
    (decision,) = client.list_decisions("kernel-tuner", "decided").decisions
    assert decision.value == b'{"tile": 5}' and decision.evidence.seconds == pytest.approx(1e-3)


def test_a_run_that_another_process_overtook_ends_with_what_that_one_found(client, monkeypatch):
    searched = Strategy._searched

    def overtaken(self, *arguments):
        (key,) = self._agreement._claims
        client.propose(DecisionKey("kernel-tuner", key, "overtaken"), b'{"tile": 7}')
        return searched(self, *arguments)

    monkeypatch.setattr(Strategy, "_searched", overtaken)
    strategy = Strategy(client, "overtaken", decide=True)
    assert tuned_list(strategy, strategy_options={"max_fevals": 4}) == ([7], 7)


def test_a_decision_that_is_not_in_the_space_is_a_miss_with_a_warning(client, monkeypatch):
    monkeypatch.setattr(Space, "encoded", lambda self, one: b'{"tile": 700}')
    assert tuned_list(Strategy(client, "misfits", decide=True))[1] == 5
    with pytest.warns(UserWarning, match="does not fit"):
        assert tuned_list(Strategy(client, "misfits", decide=True))[1] == 5


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt])
def test_a_run_that_ends_early_decides_nothing_and_leaves_the_turn_to_others(error, client):
    class Failing:
        def __call__(self, *arguments, **named):
            raise error

    strategy = Strategy(client, f"ends with {error}", decide=True)
    strategy._searched = Failing()
    with suppress(ZeroDivisionError):
        simulated(strategy, LISTED)
    assert not client.list_decisions("kernel-tuner", f"ends with {error}").decisions
    begin = time.monotonic()
    assert tuned_list(Strategy(client, f"ends with {error}", decide=True))[1] == 5
    assert time.monotonic() - begin < 10, "nobody waits for the claim's end"


def test_without_the_server_a_run_decides_nothing_and_goes_on(tmp_path):
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:
        kill(server)
        with names_a_fallback() as warned:
            measured, _ = tuned_list(Strategy(client, "away", decide=True))
    assert len(set(measured)) > 1
    assert sum("hlorank" in str(each.message) for each in warned) == 1


def test_failures_are_reported_as_failures(client):
    errors = ("CompilationFailedConfig", "RuntimeFailedConfig", "InvalidConfig")
    entries = [{"tile": 1 << place, "time": error} for place, error in enumerate(errors)]
    entries.append({"tile": 64, "time": 2.0})
    simulated(Strategy(client, "fails"), entries)
    assert sorted(map(str, stored(client, "fails"))) == ["0.002", "compile", "compile", "crash"]
    page = client.list_measurements("fails")
    assert client.get_measured_graph("fails", page.graphs[0].graph_hash) is not None


def test_parameters_may_be_text_and_a_run_ends_when_all_is_measured(client):
    entries = [
        {"flag": flag, "tile": tile, "time": float(tile + len(flag))}
        for flag in ("-O1", "-O2", "-Ofast")
        for tile in (1, 2, 4)
    ]
    results, environment = simulated(Strategy(client, "text"), entries)
    assert len(results) == 9 and environment["best_config"]["time"] == 4


def test_values_of_several_kinds_are_a_column(client):
    entries = [
        {"kind": kind, "tile": tile, "time": float(tile + len(str(kind)))}
        for kind in (None, 1, "two", 2.5)
        for tile in (1, 2, 4)
    ]
    results, environment = simulated(Strategy(client, "kinds"), entries)
    assert len(results) == len(stored(client, "kinds")) == 12
    assert environment["best_config"]["kind"] == 1


def test_the_error_of_a_result_decides_and_not_its_time(client):
    entries = [{"tile": 1 << place, "time": 1.0 + place} for place in range(4)]
    entries[1]["verified"] = "RuntimeFailedConfig"
    simulated(Strategy(client, "decides"), entries)
    assert sorted(map(str, stored(client, "decides"))) == ["0.001", "0.003", "0.004", "crash"]


@pytest.mark.parametrize("milliseconds", [-1.0, 0.0, math.inf, math.nan, 1e12])
def test_what_cannot_be_a_run_time_fails_its_configuration_alone(milliseconds, client):
    entries = [{"tile": 1 << place, "time": 1.0 + place} for place in range(3)]
    entries[1]["time"] = milliseconds
    results, _ = simulated(Strategy(client, f"odd {milliseconds}"), entries)
    assert len(results) == 3
    kept = stored(client, f"odd {milliseconds}")
    assert sorted(map(str, kept)) == ["0.001", "0.003", "crash"]


def test_a_server_that_keeps_nothing_is_said_once(tmp_path):
    entries = [{"tile": tile, "time": float(tile)} for tile in range(1, 9)]
    with run_server_that_keeps_nothing(tmp_path) as address, Client(address) as client:
        results, _ = simulated(Strategy(client, "off"), entries)
    assert len(results) == 8


def test_another_kernel_name_or_instance_shares_no_measurements(client):
    entries = [{"tile": tile, "time": float(tile)} for tile in range(1, 9)]
    for arguments in ({}, {"kernel": "other"}, {"instance": "8x4 of f64"}):
        simulated(Strategy(client, "named", **arguments), entries)
    assert len(client.list_measurements("named").graphs) == 3


def test_a_part_of_a_large_space_is_the_same_for_every_run(client, monkeypatch):
    monkeypatch.setattr("hlorank.tuners.kernel_tuner._CANDIDATES", 20)
    entries = [{"tile": tile, "time": float(tile)} for tile in range(1, 201)]
    for target in ("part", "same part"):
        simulated(Strategy(client, target), entries)
    first, second = (sorted(stored(client, target)) for target in ("part", "same part"))
    assert first == second and len(first) == 20


def test_only_the_time_is_searched(client):
    with pytest.raises(ArgumentError, match=r"objective is .*, expected time"):
        simulated(Strategy(client, "t"), [{"tile": 1, "time": 1.0}], objective="GFLOP/s")


def listed(kernel, gpu):
    """The entries of a shared list."""
    path = LISTS / f"{kernel}.{gpu}.npz"
    if not path.exists():
        pytest.skip(f"needs {path.name} in the folder data/gpu of HLORANK_SHARED")
    with np.load(path) as arrays:
        names, rows = arrays["names"].tolist(), arrays["params"].astype(int).tolist()
        times = arrays["seconds"].tolist()
    return [
        dict(zip(names, row, strict=True)) | {"time": 1e3 * time if time < math.inf else FAILED}
        for row, time in zip(rows, times, strict=True)
    ]


def test_measured_gpus_are_sources_for_others(client):
    gpus = ("RTX_3090", "RTX_3060_laptop", "RTX_2080_Ti")
    lists = {gpu: listed("pnpoly", gpu) for gpu in gpus}
    for gpu in gpus:
        simulated(Strategy(client, gpu), lists[gpu], strategy_options={"max_fevals": 60})
    # One pair says little: five measurements of another GPU may be lucky.
    above_best: dict[bool, list[float]] = {False: [], True: []}
    for known, new in itertools.permutations(gpus, 2):
        best = min(entry["time"] for entry in lists[new] if entry["time"] != FAILED)
        for has_source in (False, True):
            others = (known,) if has_source else ()
            target = f"{new} beside {known}, {has_source}"
            strategy = Strategy(client, target, other_targets=others)
            results, _ = simulated(strategy, lists[new], strategy_options={"max_fevals": 5})
            times = [result["time"] for result in results if "__error__" not in result]
            above_best[has_source].append(min(times) / best)
    alone, with_source = (fmean(above_best[has_source]) for has_source in (False, True))
    assert with_source < alone and with_source < 1.25, above_best
