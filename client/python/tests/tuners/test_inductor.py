"""The adapter of Inductor, with its real choices. Times are injected, since there is no GPU."""

import json
from contextlib import contextmanager
from itertools import product

import pytest
from servers import said_once

from hlorank import Client, DecisionKey

torch = pytest.importorskip("torch", reason="torch is not installed: `make test-train` has it")

from torch._inductor import config, ir, select_algorithm  # noqa: E402
from torch._inductor.autotune_process import TritonBenchmarkRequest  # noqa: E402
from torch._inductor.remote_cache import RemoteAutotuneCache  # noqa: E402
from torch._inductor.runtime.autotune_cache import AutotuneCache  # noqa: E402
from torch._inductor.runtime.triton_compat import Config  # noqa: E402

from hlorank.tuners.decider import key_of  # noqa: E402
from hlorank.tuners.inductor import Choices, RemoteCache, _name  # noqa: E402

MM = select_algorithm.ExternKernelChoice(torch.mm, "at::mm_out", name="mm_of_the_tests")


def choices(size=512):
    """What Inductor offers for a product on a GPU: a library's kernel and 54 of its template."""
    layout = ir.FixedLayout(torch.device("cpu"), torch.float16, [size, size], [size, 1])
    inputs = [ir.InputBuffer(name=name, layout=layout) for name in ("a", "b")]
    tiles = product((32, 64, 128), (32, 64, 128), (2, 3, 4), (4, 8))
    templates = [_template(number, inputs, layout, *tile) for number, tile in enumerate(tiles)]
    return [*templates, select_algorithm.ExternKernelCaller(MM, inputs, layout)]


def _template(number, inputs, layout, m, n, stages, warps):
    request = TritonBenchmarkRequest("mm", [], [], [], "", "", num_stages=stages, num_warps=warps)
    return select_algorithm.TritonTemplateCaller(
        f"triton_mm_{number}",
        inputs,
        layout,
        None,
        f"BLOCK_M={m}, BLOCK_N={n}, num_stages={stages}, num_warps={warps}",
        request,
        log_info={"tile_shape": str((m, 32, n))},
    )


def milliseconds(choice):
    info = choice.info_dict()
    if info["backend"] == "extern":
        return 0.5
    m, _, n = map(int, info["tile_shape"].strip("()").split(","))
    return 0.1 + (abs(m - 64) + abs(n - 128)) / 1e3 + info["num_stages"] / 1e2


def report(adapter, timings):
    """Tells an adapter what Inductor measured."""
    offered = list(timings)
    adapter.feedback(timings, "mm", offered[0].input_nodes, offered, dict, {})


def tuned(adapter, size=512):
    """Returns what is left of the choices, after all of it was measured, and the best."""
    kept = adapter.preprocess(choices(size))
    timings = {choice: milliseconds(choice) for choice in kept}
    report(adapter, timings)
    return kept, min(timings, key=timings.get)


adapter = Choices
TUNES, DECIDED = len(choices()), 0
DEFAULT = choices()[0].description
OTHER = json.dumps({"choice": _name(choices()[3])}).encode(), choices()[3].description
MISFIT = b'{"choice": "none"}'


def tune(adapter, key, fails=False):
    """As in the tests of all adapters."""
    size = 512 + 64 * key
    if not fails:
        kept, best = tuned(adapter, size)
        # Inductor measures no choice that is left alone.
        return len(kept) if len(kept) > 1 else 0, best.description

    # No choice runs, so that Inductor calls nothing of the adapter.
    def fail(*arguments, **named):
        raise select_algorithm.NoValidChoicesError("all choices failed")

    cache = select_algorithm.get_algorithm_selector_cache()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cache, "do_autotuning", fail)
        with installed(adapter), pytest.raises(select_algorithm.NoValidChoicesError):
            offered = adapter.preprocess(choices(size))
            cache.do_autotuning("mm", [], None, None, "", choices=offered)


@contextmanager
def installed(adapter):
    adapter.install()
    try:
        yield
    finally:
        select_algorithm.clear_preprocessing_fns()
        select_algorithm.clear_feedback_savers()


def test_the_second_user_measures_the_best_of_the_first_and_the_library(client):
    everything, _ = tuned(Choices(client, "H100"))
    kept, _ = tuned(Choices(client, "H100", top_k=6))
    of_another_size, _ = tuned(Choices(client, "H100", top_k=6), size=1024)
    assert len(everything) == len(of_another_size) == len(choices())
    assert 6 <= len(kept) <= 8
    assert min(map(milliseconds, kept)) == min(map(milliseconds, everything))
    assert isinstance(kept[-1], select_algorithm.ExternKernelCaller)
    assert kept[0].name == everything[0].name


def test_choices_that_inductor_skipped_are_no_failures(client):
    class CUTLASSTemplateCaller(select_algorithm.TritonTemplateCaller):
        """After the first that failed, Inductor says infinity for all of them."""

    offered = choices()
    for choice in offered[:5]:
        choice.__class__ = CUTLASSTemplateCaller
    times = {each: milliseconds(each) for each in offered}
    times |= dict.fromkeys(offered[:5], float("inf")) | dict.fromkeys(offered[5:7], float("inf"))
    report(Choices(client, "skipped"), times)
    (graph,) = client.list_measurements("skipped").graphs
    assert len(graph.failures) == len(offered) - 5
    assert graph.failures.count("compile") == 2


def test_after_the_last_choice_that_ran_only_the_first_failure_is_one(client):
    offered = choices()[:8]
    times = [milliseconds(each) for each in offered[:4]] + [float("inf")] * 4
    times[1] = float("nan")
    report(Choices(client, "CUDA is lost"), dict(zip(offered, times, strict=True)))
    (graph,) = client.list_measurements("CUDA is lost").graphs
    assert sorted(map(str, graph.failures)) == ["None"] * 3 + ["compile"] * 2


def test_inductor_calls_the_adapter(client, monkeypatch, tmp_path):
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    model = torch.nn.Linear(32, 64).eval()
    settings = {"max_autotune": True, "max_autotune_gemm_backends": "CPP,ATEN", "freezing": True}
    with installed(Choices(client, "this CPU")), torch.no_grad(), config.patch(settings):
        torch.compile(model)(torch.zeros(16, 32))
    (graph,) = client.list_measurements("this CPU").graphs
    assert len(graph.seconds) == 2, "a kernel of a library and one of C++"
    assert all(graph.seconds > 0)


CONFIGS = [Config({"XBLOCK": 1 << power}, num_warps=4, num_stages=1) for power in range(6, 9)]


@pytest.fixture
def kernel_cache(monkeypatch):
    """What Inductor keeps the configuration of a Triton kernel in, with an adapter in place."""
    monkeypatch.setattr(RemoteAutotuneCache, "backend_override_cls", None)

    def opened(adapter, kernel="cabc.py"):
        with config.patch(autotune_remote_cache=None, autotune_local_cache=True, compile_threads=2):
            adapter.install()
            meta = {
                "autotune_local_cache": config.autotune_local_cache,
                "autotune_remote_cache": config.autotune_remote_cache,
                "backend_hash": "sm_90",
            }
            return AutotuneCache.create(meta, f"ab/{kernel}", "hash of the list")

    return opened


def test_a_kernel_of_inductor_is_tuned_once_for_those_that_start_later(client, kernel_cache):
    first, second, other = (RemoteCache(client, name) for name in ("H100", "H100", "H200"))
    assert kernel_cache(first).read_best({}, CONFIGS) is None
    kernel_cache(first).save(CONFIGS[1], 1_000_000)
    kernel_cache(second).save(CONFIGS[2], 1_000_000)
    assert kernel_cache(second).read_best({}, CONFIGS) is CONFIGS[1]
    assert kernel_cache(other).read_best({}, CONFIGS) is None
    assert len(client.list_decisions("inductor", "H100").decisions) == 1


def test_an_error_of_the_remote_cache_is_a_miss(client, kernel_cache):
    adapter = RemoteCache(client, "no entry")
    cache = kernel_cache(adapter)
    key = key_of(cache.remote_cache[0]._get_key(cache.remote_cache[1]))
    client.propose(DecisionKey("inductor", key, "no entry"), b'{"XBLOCK": 64}')
    with pytest.warns(UserWarning, match="does not fit"):
        assert cache.read_best({}, CONFIGS) is None
    cache.save(CONFIGS[0], 1)
    with Client("127.0.0.1:1") as client:
        cache = kernel_cache(RemoteCache(client, "away", timeout=0.5))
        with said_once():
            assert cache.read_best({}, CONFIGS) is None
            cache.save(CONFIGS[0], 1)
    assert cache.read_best({}, CONFIGS) is None, "also once the client is closed"
