from functools import partial

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

from hlorank_tune.measure.constrain import (  # noqa: E402
    CONFIGURABLE_OPCODES,
    ConfigurableNode,
    configurable_nodes,
    constrained,
    layout_tuning_data,
)
from hlorank_tune.measure.execute import Executable, lower  # noqa: E402
from hlorank_tune.measure.results import largest_difference  # noqa: E402
from hlorank_tune.measure.schema import (  # noqa: E402
    HloInstructionProto,
    HloModuleProto,
)
from hlorank_tune.xla.layouts import LayoutSpace  # noqa: E402

from hlorank_training.measuring.layers import attention  # noqa: E402
from hlorank_training.measuring.networks import autoencoder, plain_convnet  # noqa: E402
from hlorank_training.measuring.zoo import Network  # noqa: E402


class Small:
    """A network of the zoo at a tiny size, lowered once for all tests."""

    def __init__(self, name: str, body, *inputs: tuple[int, ...], **how: bool):
        self.network = Network(name, name, body, inputs, **how)
        self.arguments = self.network.arguments()
        self.module = lower(name, self.network.function(), self.arguments)
        self.nodes = configurable_nodes(self.module)

    def configurations(self):
        """No layouts, and random ones."""
        space = LayoutSpace(self.nodes)
        drawn = space.random(np.random.default_rng(7), 24)
        return map(space.configuration, [space.default, *drawn])


MAKERS = {
    "convolutions": lambda: Small(
        "convolutions",
        partial(plain_convnet, widths=(4,), order="NCHW", kernel="OIHW"),
        (2, 3, 8, 6),
    ),
    "attention": lambda: Small("attention", partial(attention, heads=2, causal=True), (2, 5, 8)),
    "training_step": lambda: Small(
        "training_step", partial(plain_convnet, widths=(4,)), (2, 8, 6, 3), train=True
    ),
    "reversed": lambda: Small(
        "reversed", partial(autoencoder, widths=(4,)), (2, 8, 6, 3), reverse=True
    ),
}


@pytest.fixture(scope="module", params=MAKERS)
def small(request) -> Small:
    return MAKERS[request.param]()


def instructions(module) -> list:
    """The flattened list that node numbers count in."""
    return [i for computation in module.computations for i in computation.instructions]


def entry(module):
    return next(c for c in module.computations if c.id == module.entry_computation_id)


def without_constraints(module):
    """The module without its constraints, their calls, and the orders that each use of a tensor
    has, nearest the user first; that of the root is the use of nobody."""
    plain = HloModuleProto.FromString(module.SerializeToString())
    body = entry(plain)
    calls = {i.id: i for i in body.instructions if i.custom_call_target == "LayoutConstraint"}
    orders: dict[tuple[int, int], list[tuple[int, ...]]] = {}

    def source(identity: int, *use: int) -> int:
        orders[use] = []
        while identity in calls:
            orders[use].append(tuple(calls[identity].shape.layout.minor_to_major))
            (identity,) = calls[identity].operand_ids
        return identity

    kept = [i for i in body.instructions if i.id not in calls]
    for user in kept:
        sources = [source(each, user.id, slot) for slot, each in enumerate(user.operand_ids, 1)]
        user.operand_ids[:] = sources
    body.root_id = source(body.root_id, 0, 0)
    rest = [HloInstructionProto.FromString(i.SerializeToString()) for i in kept]
    del body.instructions[:]
    body.instructions.extend(rest)
    return plain, calls.values(), orders


def expected_orders(module, chosen):
    """The orders of each use, given those of the chosen tensors: as an input, and as an output."""
    uses = {
        (user.id, slot): [chosen.get((user.id, slot)), chosen.get((operand, 0))]
        for user in entry(module).instructions
        for slot, operand in enumerate(user.operand_ids, 1)
    }
    uses[0, 0] = [chosen.get((entry(module).root_id, 0))]
    return {use: [order for order in orders if order] for use, orders in uses.items()}


def test_every_dot_convolution_and_reshape_is_configurable_and_nothing_else(small):
    expected = []
    inside = {i.id for i in entry(small.module).instructions}
    for number, instruction in enumerate(instructions(small.module)):
        tensors = [instruction.shape, *operand_shapes(small.module, instruction)]
        ranks = tuple(len(shape.dimensions) for shape in tensors)
        configurable = instruction.opcode in CONFIGURABLE_OPCODES and instruction.id in inside
        if configurable and max(ranks) >= 2:
            expected.append(ConfigurableNode(number, instruction.id, (*ranks, 0)[:3]))
    assert small.nodes == expected


def test_a_module_keeps_no_trace_of_where_its_source_lay(small):
    assert b".py" not in small.module.SerializeToString()


def operand_shapes(module, instruction) -> list:
    shapes = {i.id: i.shape for i in instructions(module)}
    return [shapes[operand] for operand in instruction.operand_ids]


def test_a_configuration_changes_every_chosen_tensor_and_no_other(small):
    tensors = set()
    for configuration in small.configurations():
        stored = layout_tuning_data(small.module, small.nodes, [configuration], [1])
        flat = instructions(stored.module)
        layouts = stored.runs[0].module_config.layout_config.nodes
        chosen = {
            (flat[number].id, slot): tuple(tensor.dims)
            for number, node in zip(stored.config_index_to_node, layouts, strict=True)
            for slot, tensor in enumerate(node.tensors)
            if tensor.dims
        }
        edited = constrained(small.module, small.nodes, configuration)
        plain, calls, orders = without_constraints(edited)
        assert plain == small.module, "but for the constraints it is as it was"
        assert orders == expected_orders(small.module, chosen) and len(calls) == len(chosen)
        tensors |= set(chosen)
    every = {(n.identity, slot) for n in small.nodes for slot, r in enumerate(n.ranks) if r >= 2}
    assert tensors == every, "each tensor of each node was chosen in some configuration"
    expected, results = (Executable(each, small.arguments)() for each in (small.module, edited))
    assert largest_difference(expected, results) < 1e-4


def compiled(module, arguments) -> tuple[Executable, str]:
    executable = Executable(module, arguments)
    return executable, executable._loaded.hlo_modules()[0].to_string()


def shown(shape, order) -> str:
    """A tensor as the text of a module shows it, such as ``[6,8]{0,1}``."""
    sizes, minor_to_major = (",".join(map(str, values)) for values in (shape.dimensions, order))
    return f"[{sizes}]{{{minor_to_major}}}"


def dot(x, y):
    return jnp.tanh(jnp.tanh(x) @ jnp.tanh(y))


def convolution(x, w):
    numbers = ("NCHW", "OIHW", "NCHW")
    product = jax.lax.conv_general_dilated(jnp.tanh(x), w, (1, 1), "SAME", None, None, numbers)
    return jnp.tanh(product)


def reshape(x):
    return jnp.tanh(jnp.tanh(x).reshape(2, 3, 8))


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (dot, [(6, 8), (8, 5)]),
        (convolution, [(2, 3, 6, 7), (4, 3, 3, 5)]),
        (reshape, [(6, 8)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_compiler_obeys_where_it_would_have_chosen_otherwise(function, shapes):
    random = np.random.default_rng(0)
    arguments = [jnp.asarray(random.standard_normal(shape), jnp.float32) for shape in shapes]
    module = lower(function.__name__, function, arguments)
    (node,) = configurable_nodes(module)
    instruction = instructions(module)[node.number]
    tensors = [instruction.shape, *operand_shapes(module, instruction)]
    default, default_text = compiled(module, arguments)
    for slot, shape in enumerate(tensors):
        order = tuple(range(len(shape.dimensions)))
        choice = tuple(order if slot == other else () for other in range(3))
        executable, text = compiled(constrained(module, [node], [choice]), arguments)
        assert shown(shape, order) not in default_text
        assert shown(shape, order) in text
        assert text.count(" copy(") > default_text.count(" copy("), "the neighbours stay as is"
        assert "LayoutConstraint" not in text, "a constraint costs what its layout costs, no more"
        assert largest_difference(default(), executable()) < 1e-4
