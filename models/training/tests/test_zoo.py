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
from hlorank_training.measuring.zoo import Network, networks  # noqa: E402

NETWORKS = networks()


def test_there_are_many_networks_of_many_families_and_their_names_are_distinct():
    assert len(NETWORKS) >= 60
    assert len({network.family for network in NETWORKS}) >= 10
    assert len({network.name for network in NETWORKS}) == len(NETWORKS)


def test_inference_training_and_reversed_arguments_are_all_there():
    kinds = Counter((network.train, network.reverse) for network in NETWORKS)
    assert kinds[False, False] >= 10
    assert kinds[True, False] >= 10
    assert kinds[False, True] >= 5


def test_a_name_tells_what_is_special_about_a_network():
    for network in NETWORKS:
        assert ("train" in network.name.split("_")) == network.train, network.name
        assert ("reversed" in network.name.split("_")) == network.reverse, network.name


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
