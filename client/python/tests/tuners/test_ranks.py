"""Eight ranks of a job tune the same kernels: all use the same configurations, each tuned once."""

import inspect
import json
import os
import random
import socket
import subprocess
import sys
from contextlib import suppress
from datetime import timedelta

import pytest

from hlorank import Client

RANKS = 8
NOISE = 0.05
KEYS = {"triton": 40, "helion": 4, "inductor": 20}
PACKAGES = {"inductor": "torch"}


def triton_rank(client, keys, draw, target="ranks of Triton", group=None):
    """Yields what a rank uses for each key, and how much of it the rank measured."""
    import test_triton
    import triton

    from hlorank.tuners.triton import Pruner

    measured = []

    def bench(call, quantiles):
        measured.append(inspect.getclosurevars(call).nonlocals["config"])
        time = test_triton.milliseconds(measured[-1], key) * draw.lognormvariate(0, NOISE)
        return [time] * len(quantiles)

    pruner = Pruner(client, target, decide=True, on_away="wait", group=group)
    triton.knobs.autotuning.listener = pruner.listener
    tuner = pruner(test_triton.autotuner(0, []))
    tuner.do_bench = bench
    for key in range(keys):
        measured.clear()
        with suppress(RuntimeError):  # no active driver, for the launch of the best
            tuner[(1,)](test_triton.Array(), 100 + key)
        yield str(tuner.best_config), len(measured)


def helion_rank(client, keys, draw):
    """The same for Helion, whose keys are sizes of inputs."""
    import test_helion
    import torch
    from helion.autotuner import cache_classes
    from helion.autotuner.benchmark_provider import LocalBenchmarkProvider

    from hlorank.tuners.helion import Autotuner

    measured = []

    def bench(self, config, fn, **options):
        measured.append(config)
        return test_helion.milliseconds(config) * draw.lognormvariate(0, NOISE)

    LocalBenchmarkProvider._benchmark_function = bench
    cache_classes["none"] = lambda search, **options: search
    os.environ["HELION_AUTOTUNER"] = "RandomSearch"
    autotuner = Autotuner(client, "ranks of Helion", decide=True, on_away="wait")
    for key in range(keys):
        measured.clear()
        inputs = (torch.zeros(128 + 64 * key, 256), torch.zeros(256, 256))
        kernel = test_helion.bound(autotuner, draw.randrange(1000), inputs=inputs)
        yield str(kernel.autotune(inputs, count=test_helion.COUNT)), len(measured)


def inductor_rank(client, keys, draw):
    """The same for Inductor, whose keys are sizes of a product."""
    import test_inductor

    from hlorank.tuners.inductor import Choices

    adapter = Choices(client, "ranks of Inductor", decide=True, on_away="wait")
    for key in range(keys):
        kept = adapter.preprocess(test_inductor.choices(64 + 64 * key))
        # A single choice is taken as it is.
        measured = kept if len(kept) > 1 else []
        noise = {each: draw.lognormvariate(0, NOISE) for each in measured}
        timings = {each: test_inductor.milliseconds(each) * noise[each] for each in measured}
        if measured:
            adapter.feedback(timings, "mm", kept[0].input_nodes, kept, dict, {})
        best = min(kept, key=lambda each: timings.get(each, 0.0))
        yield best.description, len(measured)


def grouped_rank(client, keys, draw):
    """Tunes with Triton in a process group, whose leader asks the server for all ranks."""
    from torch import distributed

    distributed.init_process_group("gloo", timeout=timedelta(seconds=60))
    yield from triton_rank(client, keys, draw, "a group of Triton", distributed)
    distributed.destroy_process_group()


def main(tuner, address, keys, number):
    """Tunes as one rank, and prints what it uses."""
    ranks = {"triton": triton_rank, "helion": helion_rank, "inductor": inductor_rank}
    rank = (ranks | {"torch": grouped_rank})[tuner]
    # The others of a group need no server.
    is_led = tuner == "torch" and number != "0"
    with Client("127.0.0.1:1" if is_led else address) as client:
        print(json.dumps([*rank(client, int(keys), random.Random(number))]))


def start(tuner, address, keys, number, **variables):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([os.getcwd(), *sys.path])}
    environment |= variables
    command = [sys.executable, __file__, tuner, address, str(keys), str(number)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def alike_and_tuned(ranks):
    """For how many keys all ranks use the same, and how often one was tuned."""
    printed = (json.loads(rank.communicate()[0].splitlines()[-1]) for rank in ranks)
    by_key = list(zip(*printed, strict=True))
    alike = sum(len({used for used, _ in each}) == 1 for each in by_key)
    return alike, sum(measured > 0 for each in by_key for _, measured in each)


@pytest.mark.parametrize("tuner", KEYS)
def test_eight_ranks_use_the_same_configurations_and_each_is_tuned_once(tuner, store):
    pytest.importorskip(PACKAGES.get(tuner, tuner), reason=f"{tuner} is not installed")
    keys = KEYS[tuner]
    alike, tunings = alike_and_tuned([start(tuner, store, keys, n) for n in range(RANKS)])
    print(f"{tuner}: {alike} of {keys} keys alike on {RANKS} ranks, {tunings} tunings")
    assert alike == tunings == keys


def start_group(address, keys, count):
    for package in ("triton", "torch"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    world = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count)}
    return [start("torch", address, keys, n, RANK=str(n), **world) for n in range(count)]


def test_a_process_group_tunes_together_and_its_leader_decides(store):
    assert alike_and_tuned(start_group(store, 10, 3)) == (10, 30)
    # Once everything is decided, nobody measures.
    assert alike_and_tuned(start_group(store, 10, 3)) == (10, 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
