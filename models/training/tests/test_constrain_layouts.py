import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

from hlorank_training.constrain_layouts import (  # noqa: E402
    UNCHANGED,
    configurable_nodes,
    constrained,
    offspring,
    random_configuration,
)
from hlorank_training.execute import Executable, largest_difference  # noqa: E402
from hlorank_training.lower import lower  # noqa: E402

ARGUMENTS = [jnp.arange(48.0).reshape(6, 8), jnp.arange(40.0).reshape(8, 5) / 7]


def network(x, y):
    return jax.nn.softmax(jnp.tanh(x @ y).reshape(2, 3, 5) + 1, axis=-1)


@pytest.fixture(scope="module")
def module():
    return lower("network", network, ARGUMENTS)


def test_nodes_are_numbered_over_all_computations_in_proto_order(module):
    flat = [i for computation in module.computations for i in computation.instructions]
    nodes = configurable_nodes(module)
    assert len(module.computations) > 1, "the reductions have computations of their own"
    assert {flat[node.number].opcode for node in nodes} == {"dot", "reshape"}
    assert all(flat[node.number].id == node.identity for node in nodes)
    dot = next(node for node in nodes if flat[node.number].opcode == "dot")
    assert dot.ranks == (2, 2, 2)


def test_a_module_keeps_no_trace_of_where_its_source_lay(module):
    assert b".py" not in module.SerializeToString()


def test_the_unchanged_configuration_leaves_the_module_alone(module):
    nodes = configurable_nodes(module)
    assert constrained(module, nodes, [UNCHANGED] * len(nodes)) == module


def test_a_constraint_appears_for_every_chosen_tensor_and_results_stay(module):
    nodes = configurable_nodes(module)
    entries = [((0, 1), (1, 0), (0, 1)) if n.ranks == (2, 2, 2) else UNCHANGED for n in nodes]
    edited = constrained(module, nodes, entries)
    calls = [
        i
        for c in edited.computations
        for i in c.instructions
        if i.custom_call_target == "LayoutConstraint"
    ]
    orders = sorted(tuple(call.shape.layout.minor_to_major) for call in calls)
    assert orders == [(0, 1), (0, 1), (1, 0)]
    expected = Executable(module, ARGUMENTS)()
    assert largest_difference(expected, [network(*ARGUMENTS)]) < 1e-6
    assert largest_difference(expected, Executable(edited, ARGUMENTS)()) < 1e-6


def test_random_configurations_and_their_offspring_are_permutations(module):
    nodes = configurable_nodes(module)
    random = np.random.default_rng(0)
    parents = [random_configuration(nodes, random) for _ in range(20)]
    for configuration in [*parents, offspring(parents, nodes, random)]:
        for node, entry in zip(nodes, configuration, strict=True):
            for rank, order in zip(node.ranks, entry, strict=True):
                assert order == () or sorted(order) == list(range(rank))
