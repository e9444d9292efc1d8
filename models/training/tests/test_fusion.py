"""Fusions on XLA:CPU: forced exactly, with the same results, and timed."""

from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from hlorank_tune.measure.execute import Executable, flat_arguments, lower, on_device  # noqa: E402
from hlorank_tune.measure.fusion.compilation import (  # noqa: E402
    CHOSEN_FUSION,
    DEFAULT,
    LOOPED,
    Compilation,
)
from hlorank_tune.measure.fusion.kernels import drawn, greedy, neighbour, unfused  # noqa: E402
from hlorank_tune.measure.fusion.prepare import prepare  # noqa: E402
from hlorank_tune.measure.fusion.write import (  # noqa: E402
    fused_program,
    lone_kernel,
    looped,
)
from hlorank_tune.measure.results import largest_difference  # noqa: E402

from hlorank_training.measuring import light_programs as light  # noqa: E402
from hlorank_training.measuring.lone_kernels import time_kernel  # noqa: E402
from hlorank_training.measuring.networks import mixer, plain_convnet  # noqa: E402
from hlorank_training.measuring.zoo import Network  # noqa: E402

SMALL = [
    Network("adam", "optimizer", light.adam, ((12, 16), (12, 16))),
    Network("wave", "stencil", partial(light.wave, steps=2), ((8, 12),)),
    Network("sharpen", "image", light.sharpen, ((2, 8, 8, 3),), train=True),
    Network("mixer", "mixer", partial(mixer, layers=1, transposed=True), ((2, 4, 6),)),
    Network("plain", "plain", partial(plain_convnet, widths=(4,), order="NCHW"), ((2, 3, 6, 4),)),
]


class Subject:
    def __init__(self, network):
        self.arguments = on_device(flat_arguments(network.arguments()))
        module = lower(network.name, network.function(), network.arguments())
        self.expected = Executable(module, self.arguments, DEFAULT)()
        self.prepared = prepare(module)
        self.graph = self.prepared.graph

    def configurations(self):
        random = np.random.default_rng(0)
        compilers = self.prepared.compilers
        near = neighbour(self.graph, compilers.fused, random, 2)
        random_ones = [drawn(self.graph, random) for _ in range(3)]
        return [compilers, greedy(self.graph), unfused(self.graph), *random_ones, near]


@pytest.fixture(scope="module", params=SMALL, ids=lambda network: network.name)
def subject(request):
    return Subject(request.param)


def test_compiled_kernels_are_the_wanted_ones_and_the_results_stay_the_same(subject):
    counts = set()
    for one in subject.configurations():
        module = fused_program(subject.graph, one.kernels)
        compilation = Compilation(module.SerializeToString(), CHOSEN_FUSION)
        executable = compilation.executable(subject.arguments)  # raises for other kernels
        assert largest_difference(subject.expected, executable()) < 1e-4
        counts.add(len(one.kernels))
    assert len(counts) > 1


def test_the_prepared_module_has_no_layouts_but_row_major_and_no_names_of_sources(subject):
    for computation in subject.graph.module.computations:
        for instruction in computation.instructions:
            assert instruction.opcode not in ("bitcast", "fusion", "copy")
            if not instruction.shape.tuple_shapes:
                rank = len(instruction.shape.dimensions)
                assert list(instruction.shape.layout.minor_to_major) == list(reversed(range(rank)))
            assert not instruction.metadata


def lone(function, *shapes):
    values = [np.full(shape, 0.5, np.float32) for shape in shapes]
    graph = prepare(lower("kernel", function, values)).graph
    return lone_kernel(graph, greedy(graph).kernels[-1]), values


def test_a_loop_computes_what_the_kernel_computes():
    kernel, values = lone(lambda x, y: jax.numpy.tanh(x * y).sum(1), (6, 8), (6, 8))
    expected = Executable(kernel, on_device(values), CHOSEN_FUSION)()
    inputs = on_device([np.int32(3), np.zeros(6, np.float32), *values])
    assert largest_difference(expected, Executable(looped(kernel), inputs, LOOPED)()) == 0


def test_longer_kernels_take_longer_and_only_large_ones_are_timed_with_other_caches():
    small, _ = lone(lambda x: jax.numpy.tanh(x), (64, 64))
    large, _ = lone(lambda x: jax.numpy.tanh(x), (512, 512))
    short, long = time_kernel(small), time_kernel(large)
    assert min(short.hot) > 100
    assert min(long.hot) > 10 * min(short.hot)
    assert short.warm is None, "its arrays stay in the caches of a core"
    assert min(long.warm) > 10 * min(short.hot)


def test_a_short_kernel_that_reads_a_part_of_a_large_array_has_one_time():
    kernel, _ = lone(lambda x: jax.numpy.tanh(x[:8]), (4096, 64))
    times = time_kernel(kernel)
    assert min(times.hot) < 5_000 and times.warm is None
