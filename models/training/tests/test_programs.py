"""The networks and the random kernels that are measured."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from hlorank_tune.measure.results import largest_difference  # noqa: E402

from hlorank_training.measuring.layers import attention  # noqa: E402
from hlorank_training.measuring.networks import mixer, plain_convnet  # noqa: E402
from hlorank_training.measuring.random_kernels import (  # noqa: E402
    COUNT,
    SHARES,
    random_kernel,
    random_kernels,
)
from hlorank_training.measuring.zoo import (  # noqa: E402
    Network,
    fusion_programs,
    light_programs,
    networks,
)

NETWORKS = networks()


def test_programs_are_of_many_families_and_kinds_and_their_names_say_so():
    for programs, count, families in ((NETWORKS, 60, 10), (light_programs(), 40, 9)):
        assert len(programs) >= count and len({one.family for one in programs}) >= families
    assert len({one.name for one in fusion_programs()}) == len(fusion_programs()) >= 100
    kinds = Counter((network.train, network.reverse) for network in NETWORKS)
    assert kinds[False, False] >= 10 and kinds[True, False] >= 10 and kinds[False, True] >= 5
    for network in NETWORKS:
        words = network.name.split("_")
        assert ("train" in words, "reversed" in words) == (network.train, network.reverse)


def test_families_alternate_so_that_a_stop_keeps_the_balance():
    families = [network.family for network in NETWORKS]
    assert all(a != b for a, b in pairwise(families))
    assert len(set(families[:20])) >= 10


def test_arguments_are_the_same_on_every_call():
    network = Network("small", "mixer", partial(mixer, layers=1), ((2, 4, 6),))
    first, second = network.arguments(), network.arguments()
    assert len(first) > 1
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


SMALL = [
    Network("convolutions", "plain", partial(plain_convnet, widths=(4,)), ((2, 6, 4, 3),)),
    Network("mixer", "mixer", partial(mixer, layers=1, transposed=True), ((2, 4, 6),)),
    Network("attention", "transformer", partial(attention, heads=2), ((2, 4, 6),), train=True),
]


@pytest.mark.parametrize("network", SMALL, ids=lambda network: network.name)
def test_reversed_arguments_hold_the_same_values_and_give_the_same_results(network):
    turned = replace(network, reverse=True)
    arguments, reversed_arguments = network.arguments(), turned.arguments()
    for straight, other in zip(arguments, reversed_arguments, strict=True):
        assert other.shape == straight.shape[::-1]
        assert (np.asarray(straight) == np.asarray(other).T).all()
    expected = jax.tree.leaves(jax.jit(network.function())(*arguments))
    actual = jax.tree.leaves(jax.jit(turned.function())(*reversed_arguments))
    if network.train:  # gradients are turned like the parameters that they belong to
        actual = [array.transpose() for array in actual]
    assert largest_difference(expected, actual) < 1e-5


def test_a_training_step_returns_the_loss_and_a_gradient_of_every_parameter():
    network = replace(SMALL[1], train=True)
    arguments = network.arguments()
    loss, gradients = jax.eval_shape(network.function(), *arguments)
    assert loss.shape == ()
    assert [g.shape for g in gradients] == [a.shape for a in arguments[len(network.inputs) :]]


KERNELS = list(random_kernels(300))
FAMILIES = Counter(kernel.family for kernel in KERNELS)


def share(*prefixes: str) -> float:
    return sum(n for family, n in FAMILIES.items() if family.startswith(prefixes)) / len(KERNELS)


def text(kernel) -> str:
    return jax.jit(kernel.function, keep_unused=True).lower(*kernel.arguments).as_text()


def test_the_shares_of_the_main_operations_are_kept_in_every_twenty_kernels():
    assert sum(SHARES.values()) == 100
    assert share("contraction", "mat") == pytest.approx(0.40)
    assert share("convolution", "pooling", "stencil") == pytest.approx(0.25)
    assert share("reduction", "softmax", "normalization") == pytest.approx(0.20)
    assert share("elementwise", "transpose", "cast") == pytest.approx(0.15)


def test_there_are_many_families_and_neighbours_differ_so_that_a_stop_keeps_the_balance():
    assert len({kernel.name for kernel in KERNELS}) == len(KERNELS)
    assert all(kernel.name[:-5] == kernel.family for kernel in KERNELS)
    assert len(FAMILIES) >= 20
    assert max(FAMILIES.values()) < 0.2 * len(KERNELS)
    same = sum(a.family == b.family for a, b in pairwise(KERNELS))
    assert same < 0.1 * len(KERNELS)


def test_a_kernel_depends_on_its_index_alone():
    for index in (0, 7, 299):
        again = random_kernel(index)
        assert (again.name, again.arguments) == (KERNELS[index].name, KERNELS[index].arguments)
        assert text(again) == text(KERNELS[index])


def test_a_kernel_holds_between_a_few_kilobytes_and_a_few_dozen_megabytes():
    for kernel in [*KERNELS, random_kernel(COUNT - 1)]:
        arrays = (*kernel.arguments, jax.eval_shape(kernel.function, *kernel.arguments))
        assert all(array.size > 0 for array in arrays), kernel.name
        size = sum(array.size * array.dtype.itemsize for array in arrays)
        assert 2e3 < size < 64e6, kernel.name


@pytest.mark.parametrize("index", range(0, 40, 2))
def test_iree_makes_a_tunable_dispatch_of_a_kernel(index, configured):
    assert "distribution = [" in configured(text(random_kernel(index)))


@pytest.fixture(scope="module")
def configured():
    """Returns a function that compiles StableHLO until IREE has chosen the default tiles."""
    tools = pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
    target = ["--iree-llvmcpu-target-cpu=host", "--compile-to=executable-configurations"]

    def compile_text(module: str) -> str:
        return tools.compile_str(
            module, input_type="stablehlo", target_backends=["llvm-cpu"], extra_args=target
        ).decode()

    return compile_text
