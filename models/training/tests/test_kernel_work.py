"""What kernels compute and read, counted inside the network: by hand on small kernels."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training.data.batch import bucket_of  # noqa: E402
from hlorank_training.data.kernels import MeasuredKernel  # noqa: E402
from hlorank_training.models.kernel_batch import make_batch  # noqa: E402
from hlorank_training.models.kernel_work import AMOUNTS, KernelWork, Work  # noqa: E402
from hlorank_training.models.opcode_ids import OPCODE_IDS  # noqa: E402

FLOAT = 13
"""Column of the element type f32."""


def node(opcode, shape, operands=(), dimensions=()):
    features = np.zeros(140, np.float32)
    features[FLOAT], features[28], features[44] = 1, np.prod(shape), 1
    features[21 : 21 + len(shape)] = shape
    features[31 : 31 + len(dimensions)] = dimensions
    return opcode, features, operands


def kernel(*nodes, nanoseconds=1e4) -> MeasuredKernel:
    """A kernel of nodes, of which the last one is the root."""
    features = np.stack([features for _, features, _ in nodes])
    features[-1, 0] = 1
    edges = [(user, operand) for user, (_, _, operands) in enumerate(nodes) for operand in operands]
    opcodes = np.array([OPCODE_IDS[opcode] for opcode, _, _ in nodes])
    edges = np.array(edges, np.int64).reshape(-1, 2)
    return MeasuredKernel("0", opcodes, features, edges, nanoseconds, frozenset("a"))


def work_of(one: MeasuredKernel) -> Work:
    batch = make_batch([one], np.array([0]))
    return KernelWork()(batch.opcode, batch.features, batch.operands, batch.mask)


def evaluations(one: MeasuredKernel) -> list[float]:
    return work_of(one).evaluations[0, : len(one.opcode)].tolist()


def test_a_diamond_of_elementwise_nodes_is_computed_once():
    diamonds = [node("parameter", (8, 4)), node("tanh", (8, 4), (0,))]
    for last in range(1, 21, 2):
        diamonds += [node("negate", (8, 4), (last,)), node("add", (8, 4), (last, last + 1))]
    assert evaluations(kernel(*diamonds)) == [32] * len(diamonds)


def test_every_other_index_computes_a_node_again():
    turned = kernel(
        node("parameter", (8, 4)),
        node("tanh", (8, 4), (0,)),
        node("reverse", (8, 4), (1,), (1,)),
        node("add", (8, 4), (1, 2)),
    )
    assert evaluations(turned) == [64, 64, 32, 32]


def test_a_reduction_computes_all_that_it_reads_and_a_concatenation_a_part():
    reduced = kernel(
        node("parameter", (8, 4)),
        node("tanh", (8, 4), (0,)),
        node("reduce", (8,), (1,), (1,)),
        node("broadcast", (8, 3), (2,), (0,)),
    )
    assert evaluations(reduced) == [96, 96, 24, 24]
    assert work_of(reduced).work[0, 2] == 96, "a reduction works on what it reads"
    joined = kernel(
        node("parameter", (8, 4)),
        node("parameter", (8, 12)),
        node("concatenate", (8, 16), (0, 1), (1,)),
    )
    assert evaluations(joined) == [32, 96, 128]


def test_a_column_is_read_in_as_many_rows_as_it_has_elements():
    column = kernel(node("parameter", (64, 32)), node("slice", (64, 1), (0,)))
    rows = kernel(node("parameter", (64, 32)), node("slice", (2, 32), (0,)))
    assert [work_of(one).rows[0, 0] for one in (column, rows)] == [64, 2]
    # A whole line for each element, but no more than the parameter has.
    assert work_of(column).bytes[0, 0] == 64 * (64 + 4)
    assert work_of(rows).bytes[0, 0] == 2 * 64 + 64 * 4


def test_a_transpose_of_the_minor_dimension_reads_element_by_element():
    def rows(permutation, shape):
        start = node("parameter", (4, 8, 16))
        return work_of(kernel(start, node("transpose", shape, (0,), permutation))).rows[0, 0]

    assert rows((0, 2, 1), (4, 16, 8)) == 4 * 8 * 16
    assert rows((1, 0, 2), (8, 4, 16)) == 4 * 8


@pytest.mark.parametrize(
    ("opcode", "shape", "dimensions", "changes"),
    [
        ("concatenate", (8, 20), (1,), 1),
        ("concatenate", (20, 16), (0,), 0),
        ("slice", (8, 15), (), 1),
        ("slice", (7, 16), (), 0),
        ("reduce", (8,), (1,), 1),
        ("reduce", (16,), (0,), 0),
        ("broadcast", (8, 16, 4), (0, 1), 1),
        ("broadcast", (4, 8, 16), (1, 2), 0),
        ("reverse", (8, 16), (1,), 1),
        ("tanh", (8, 16), (), 0),
    ],
)
def test_what_changes_the_minor_dimension_is_known(opcode, shape, dimensions, changes):
    one = kernel(node("parameter", (8, 16)), node(opcode, shape, (0,), dimensions))
    assert work_of(one).access.changes[0].tolist()[:2] == [0, changes]


def test_padding_does_not_count():
    one = kernel(node("parameter", (8, 4)), node("tanh", (8, 4), (0,)))
    larger = kernel(
        *[node("parameter", (2,)) for _ in range(9)], node("add", (2,), tuple(range(9)))
    )
    alone, beside = work_of(one).amounts, make_batch([one, larger], np.arange(2))
    both = KernelWork()(beside.opcode, beside.features, beside.operands, beside.mask).amounts
    assert beside.opcode.shape[1] == bucket_of(10) and alone.shape == (1, AMOUNTS)
    assert torch.equal(both[:1], alone)


def test_two_transposes_that_cancel_leave_a_walk_along_memory():
    there = node("transpose", (4, 16, 8), (0,), (0, 2, 1))
    back = node("transpose", (4, 8, 16), (1,), (0, 2, 1))
    found = work_of(kernel(node("parameter", (4, 8, 16)), there, back)).walk
    assert found.along[0, :3].tolist() == [1, 0, 1]
    assert found.across[0, :3].tolist() == [0, 1, 0]
    # Of the transposed array, 16 iterations pass between consecutive elements.
    assert found.distance[0, :3].exp().tolist() == pytest.approx([1, 16, 1])


def test_a_reshape_walks_the_dimension_with_its_stride():
    split = node("reshape", (6, 4, 2), (0,))
    found = work_of(kernel(node("parameter", (24, 2)), split))
    assert found.access.moves[0, 1, :3, :2].tolist() == [[1, 0], [1, 0], [0, 1]]
    assert found.walk.along[0, :2].tolist() == [1, 1]


def test_a_reduction_is_a_loop_inside():
    def walks(shape, dimension):
        found = work_of(
            kernel(node("parameter", (8, 16)), node("reduce", shape, (0,), (dimension,)))
        ).walk
        return found.along[0, 0], found.across[0, 0], found.reduced_along[0, 0]

    assert walks((16,), 0) == (1, 0, 0)
    assert walks((8,), 1) == (0, 1, 1)
