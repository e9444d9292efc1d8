"""The adapter of Triton, with its real autotuner. Times are injected, since there is no GPU."""

import inspect
import json
import random
from statistics import median

import numpy as np
import pytest

from hlorank import ArgumentError, Client

triton = pytest.importorskip("triton", reason="triton is not installed")

import triton.language as tl  # noqa: E402

from hlorank.tuners.triton import Pruner, _settings  # noqa: E402

TARGET = "H100, Triton 3.9"
LISTS = range(5)
"""Seeds of lists of configurations and their times."""


def configs():
    return [
        triton.Config({"block": block, "precision": precision}, num_warps=warps, num_stages=stages)
        for block in (32, 64, 128, 256)
        for precision in ("ieee", "tf32")
        for warps in (2, 4, 8)
        for stages in (2, 3, 4)
    ]


def milliseconds(config, seed):
    """A time with a best block and number of warps, and a part that nothing explains."""
    block, warps = config.kwargs["block"], config.num_warps
    rough = random.Random(f"{seed} {config}").uniform(1, 1.3)
    slow = 1 + abs(block - 2 ** (5 + seed % 4)) / 64 + abs(warps - 2 ** (1 + seed % 3)) / 4
    return slow * rough * (0.7 if config.kwargs["precision"] == "tf32" else 1)


def autotuner(seed, measured, failing=(), error=None):
    """A kernel whose measured configurations are noted, and which cannot be launched here."""

    def do_bench(call, quantiles):
        if error is not None:
            raise error
        config = inspect.getclosurevars(call).nonlocals["config"]
        measured.append(config)
        noise = random.Random(f"{seed} {len(measured)}").uniform(0.98, 1.02)
        time = float("inf") if config in failing else noise * milliseconds(config, seed)
        return [time] * len(quantiles)

    @triton.autotune(configs(), key=["n"], do_bench=do_bench)
    @triton.jit
    def scale(x, n, block: tl.constexpr, precision: tl.constexpr):
        place = tl.program_id(0) * block + tl.arange(0, block)
        tl.store(x + place, 2 * tl.load(x + place, mask=place < n), mask=place < n)

    return scale


class Array:
    dtype = "float32"


ARGUMENTS = {"x": Array(), "n": 100}


def tuned(pruner, seed, failing=(), error=None):
    """Returns the configurations that Triton's autotuner measures, in order, and the best."""
    measured = []
    tuner = pruner(autotuner(seed, measured, failing, error))
    with triton.knobs.autotuning.scope():
        triton.knobs.autotuning.listener = pruner.listener
        words = "active drivers" if error is None else str(error)
        with pytest.raises(RuntimeError, match=words):  # the launch of the best
            tuner[(1,)](Array(), 100 + seed)
    if error is not None:
        # What only compiles it, Triton tells no listener of either.
        tuner.fn.warmup = lambda *arguments, **named: None
        tuner.warmup(Array(), n=100 + seed, grid=(1,))
    return measured, getattr(tuner, "best_config", None)


adapter = Pruner
TUNES, DECIDED = len(configs()), 0
DEFAULT = str(configs()[0])
OTHER = json.dumps(_settings(configs()[5])).encode(), str(configs()[5])
MISFIT = b'{"kwargs": {"block": 7}}'


def tune(adapter, key, fails=False):
    """As in the tests of all adapters."""
    error = RuntimeError("an illegal access to memory") if fails else None
    measured, best = tuned(adapter, key, error=error)
    return len(measured), str(best)


def test_another_user_begins_with_what_the_first_found(client):
    pruner = Pruner(client, TARGET)
    found = [tuned(pruner, seed) for seed in LISTS]
    assert [len(measured) for measured, _ in found] == [len(configs())] * len(LISTS)
    pruner = Pruner(client, TARGET, top_k=4)
    found = [tuned(pruner, seed) for seed in LISTS]
    assert all(4 <= len(measured) <= 5 for measured, _ in found)
    best = [min(milliseconds(each, seed) for each in configs()) for seed in LISTS]
    slower = [milliseconds(found[seed][0][0], seed) / best[seed] - 1 for seed in LISTS]
    print("first suggestion of the second user, slower by", [f"{each:.1%}" for each in slower])
    assert median(slower) <= 0.05


def test_a_list_with_another_value_shares_what_was_measured(client):
    tuned(Pruner(client, "shared"), 0)
    pruner = Pruner(client, "shared", top_k=3)
    tuner = autotuner(0, [])
    extended = [triton.Config({"block": 64, "precision": "bf16x3"}), *configs()]
    kept = pruner(tuner).early_config_prune(extended, ARGUMENTS)
    assert min(configs(), key=lambda each: milliseconds(each, 0)) in kept


def test_an_unknown_key_and_an_edited_kernel_begin_anew(client):
    pruner = Pruner(client, "anew", top_k=4)
    tuned(pruner, 0)
    tuner = pruner(autotuner(0, []))
    prune = tuner.early_config_prune
    assert len(prune(configs(), ARGUMENTS)) <= 5
    assert len(prune(configs(), ARGUMENTS | {"n": 101})) == len(configs())
    tuner.fn._unsafe_update_src(tuner.fn.src + "\n    tl.debug_barrier()")
    assert len(prune(configs(), ARGUMENTS)) == len(configs())


def test_a_failure_is_not_proposed_but_the_first_configuration_is_kept(client):
    fastest = sorted(configs(), key=lambda each: milliseconds(each, 1))[:3]
    failing = [configs()[0], *fastest]
    pruner = Pruner(client, "failures", top_k=4)
    _, best = tuned(pruner, 1, failing=failing)
    kept, _ = tuned(pruner, 1, failing=failing)
    assert best not in failing
    assert kept[0] == best
    assert [each for each in kept if each in failing] == [configs()[0]]


@pytest.mark.parametrize("of", [np.array, tuple, lambda times: times[0]])
def test_a_benchmark_of_the_kernel_may_return_any_kind_of_times(of, client):
    timings = {each: of([milliseconds(each, 0)] * 3) for each in configs()}
    timings |= {each: of([float("inf")] * 3) for each in configs()[:2]}
    pruner = Pruner(client, f"times of {of}")
    pruner.listener(fn=autotuner(0, []).fn, key=(100, "float32"), configs_timings=timings)
    (graph,) = client.list_measurements(f"times of {of}").graphs
    assert graph.failures.count("compile") == 2
    assert graph.seconds.max() == max(milliseconds(each, 0) for each in configs()[2:]) / 1e3


def test_configurations_may_leave_an_argument_to_its_default(client):
    short = triton.Config({"block": 32})
    listed = [*configs(), short, triton.Config({"block": 32}, ir_override="other.ttgir")]
    pruner = Pruner(client, "defaults", top_k=1)
    tuner = pruner(autotuner(0, []))
    assert tuner.early_config_prune(listed, ARGUMENTS) == listed
    timings = {each: [1.0] * 3 for each in listed} | {short: [0.01] * 3}
    pruner.listener(fn=tuner.fn, key=(100, "float32"), configs_timings=timings)
    assert tuner.early_config_prune(listed, ARGUMENTS)[0] is short


def test_only_what_autotune_returns_is_pruned():
    with Client("127.0.0.1:1") as client, pytest.raises(ArgumentError, match="autotuner is"):
        Pruner(client, "t")(autotuner(0, []).fn)


def test_an_earlier_prune_of_the_kernel_runs_first(client):
    tuner = autotuner(0, [])
    tuner.early_config_prune = lambda configs, named_args, **kwargs: configs[-2:]
    kept = Pruner(client, "earlier")(tuner).early_config_prune(configs(), ARGUMENTS)
    assert kept == configs()[-2:]
