"""What a configuration does to a node, on graphs small enough to work out by hand."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from examples import node_features  # noqa: E402
from hlorank_training.models.layout_part import LayoutPart  # noqa: E402
from hlorank_training.models.segment_model import SegmentBatch  # noqa: E402
from hlorank_training.models.tile_part import READ, SCALE, STEPS, TilePart  # noqa: E402
from hlorank_training.models.vector_part import VectorTilePart  # noqa: E402

PARAMETER, OTHER = 63, 30


def kernel(shapes: list[tuple[int, ...]], reduction: tuple[int, ...], output: tuple[int, ...]):
    """One tile of a kernel whose last node is its output and whose others are its inputs."""
    nodes = len(shapes)
    config = torch.zeros(1, 24)
    for start, bounds in ((0, reduction), (8, output)):
        values = torch.tensor(bounds, dtype=torch.float32)
        config[0, start : start + len(bounds)] = values
        config[0, start + 6] = values.sum()
        config[0, start + 7] = values.prod() if bounds else 0
    opcode = torch.tensor([[PARAMETER] * (nodes - 1) + [OTHER]])
    edges = torch.zeros(1, nodes, nodes)
    edges[0, -1, :-1] = 1
    segment = torch.zeros(1, dtype=torch.long)
    rows = torch.from_numpy(node_features(shapes)).unsqueeze(0)
    return SegmentBatch(opcode, rows, edges, torch.ones(1, nodes), segment, config)


@pytest.mark.parametrize(
    ("shapes", "reduction", "output", "pieces"),
    [
        pytest.param([(8, 6), (6, 12), (8, 12)], (3,), (4, 12), [4 * 3, 3 * 12, 48], id="matmul"),
        pytest.param([(6, 8), (12, 6), (8, 12)], (3,), (4, 6), [3 * 4, 6 * 3, 24], id="transposed"),
        pytest.param([(5, 7, 9), (5, 7)], (3,), (1, 7), [7 * 3, 7], id="row reduction"),
        pytest.param([(32, 48), (48,), (32, 48)], (), (8, 12), [96, 12, 96], id="elementwise"),
        pytest.param(
            [(2, 34, 34, 16), (3, 3, 16, 24), (2, 32, 32, 24)],
            (3, 3, 16),
            (1, 8, 32, 12),
            [34 * 8 / 32 * 34 * 16, 9 * 16 * 12, 8 * 32 * 12],
            id="convolution",
        ),
        pytest.param([(2, 32, 32, 8), (2, 16, 16, 8)], (2, 2), (1, 4, 16, 8), [2048, 512], id="p"),
    ],
)  # fmt: skip
def test_every_node_sees_which_piece_of_it_a_tile_touches(shapes, reduction, output, pieces):
    _, pieces_of_nodes = TilePart(4).words(kernel(shapes, reduction, output))
    assert torch.exp(pieces_of_nodes[0, :, 0]).tolist() == pytest.approx(pieces, rel=1e-4)


def test_the_loop_of_a_tile_knows_its_steps_and_what_a_step_reads():
    loop, _ = TilePart(4).words(kernel([(8, 6), (6, 12), (8, 12)], (3,), (4, 12)))
    columns = (STEPS - 1, STEPS, READ)
    tiles, steps, read = (float(torch.exp(loop[0, column])) for column in columns)
    assert (tiles, read) == (pytest.approx(2), pytest.approx(4 * 3 + 3 * 12))
    assert steps == pytest.approx(4), "two tiles of the output, two of the reduction"


Node = tuple[int, tuple[int, ...], dict[int, tuple[int, ...]]]
"""An opcode, an output shape, and layouts: 0 of the output, 1 and 2 of inputs."""


def layouts(*chain: Node) -> SegmentBatch:
    """Every node reads the one before it."""
    nodes = len(chain)
    config = torch.full((1, nodes, 18), -1)
    for node, (_, _, entry) in enumerate(chain):
        for tensor, minor_to_major in entry.items():
            start = 6 * tensor
            config[0, node, start : start + len(minor_to_major)] = torch.tensor(minor_to_major)
    edges = torch.diag_embed(torch.ones(1, nodes - 1), -1)
    rows = torch.from_numpy(node_features([shape for _, shape, _ in chain])).unsqueeze(0)
    # Of convolutions as in "bf01": batch, features, then space; of kernels features first, too.
    rows[..., 93:107] = torch.tensor([0, 1, 2, 3, 0, 0, 1, 0, 2, 3, 0, 0, 0, 1])
    opcode = torch.tensor([[code for code, _, _ in chain]])
    segment = torch.zeros(1, dtype=torch.long)
    return SegmentBatch(opcode, rows, edges, torch.ones(1, nodes), segment, config)


def copied(batch: SegmentBatch, node: int) -> list[float]:
    """Elements that are copied at a node: of its output, of what arrives, into what suits."""
    _, amounts = LayoutPart(4, 0).words(batch)
    # Small enough that the saturation of large amounts is not seen.
    return (amounts[0, ::3, node] * 2**16).tolist()


CONVOLUTION, DOT, ADD, RESHAPE = 26, 34, 2, 75
ROWS, COLUMNS = (1, 0), (0, 1)
MATRIX = (4, 8)


@pytest.mark.parametrize(
    ("written", "asked", "at_writer", "at_reader"),
    [
        ({}, {}, [0, 0, 0], [0, 0, 0]),
        ({0: ROWS}, {}, [0, 0, 0], [0, 0, 0]),
        ({0: COLUMNS}, {1: COLUMNS}, [32, 0, 0], [0, 0, 32]),
        ({0: COLUMNS}, {}, [32, 0, 0], [0, 0, 32]),
        ({}, {1: COLUMNS}, [0, 0, 0], [0, 32, 32]),
        ({0: COLUMNS}, {1: ROWS}, [32, 0, 0], [0, 32, 0]),
    ],
)
@pytest.mark.parametrize("between", [0, 1, 2])
def test_data_is_copied_where_orders_differ(written, asked, at_writer, at_reader, between):
    chain = [(DOT, MATRIX, written), *[(ADD, MATRIX, {})] * between, (RESHAPE, (32,), asked)]
    batch = layouts(*chain)
    assert copied(batch, 0) == pytest.approx(at_writer, rel=1e-3)
    assert copied(batch, len(chain) - 1) == pytest.approx(at_reader, rel=1e-3)
    for node in range(1, len(chain) - 1):
        assert copied(batch, node) == [0, 0, 0]


def test_a_copy_knows_how_far_apart_either_order_has_the_others_neighbours():
    words, _ = LayoutPart(4, 0).words(layouts((DOT, MATRIX, {}), (RESHAPE, (32,), {1: COLUMNS})))
    arrives = words[0, 1, :3].tolist()
    # Columns lie 8 elements apart in rows, 3 bits, and rows 4 apart in columns; 8 bits count as 1.
    assert arrives == pytest.approx([1, 3 / 8, 2 / 8])


@pytest.mark.parametrize(("order", "elements"), [((1, 3, 2, 0), 0), ((3, 2, 1, 0), 480)])
def test_features_minor_most_suit_a_convolution(order, elements):
    image = (2, 3, 8, 10)
    assert copied(layouts((CONVOLUTION, image, {0: order})), 0)[0] == pytest.approx(
        elements, rel=1e-2
    )


def test_dimensions_of_one_element_do_not_count():
    assert copied(layouts((DOT, (4, 1, 8), {0: (1, 2, 0)})), 0) == [0, 0, 0]
    assert copied(layouts((DOT, (4, 1, 8), {0: (1, 0, 2)})), 0)[0] == pytest.approx(32, rel=1e-3)


def test_the_larger_operand_is_the_first_input_of_a_product_with_more_rows_than_columns():
    batch = layouts((ADD, (64, 8), {}), (ADD, (8, 4), {}), (DOT, (64, 4), {2: COLUMNS}))
    batch.edges[0, 2, :2] = 1
    batch.edges[0, 1, 0] = 0
    assert copied(batch, 2) == pytest.approx([0, 32, 32], rel=1e-3)


LEVEL_WORDS = (18, 23)
"""Features of the loops of both levels; after five lengths come the tiles, the steps and what a
step reads."""


def loop_of(batch: SegmentBatch, level: int) -> list[float]:
    words, _ = VectorTilePart(4).words(batch)
    start = sum(LEVEL_WORDS[:level]) + 5
    return torch.exp(SCALE * words[0, start : start + 3]).tolist()


def test_both_levels_know_their_pieces_their_tiles_their_steps_and_what_a_step_reads():
    batch = kernel([(8, 6), (6, 32), (8, 32)], (3,), (16, 4))
    batch.config[0, 16:18] = torch.tensor([8.0, 2.0])
    loop, pieces = VectorTilePart(4).words(batch)
    elements = torch.exp(pieces[0])
    assert elements[:, 0].tolist() == pytest.approx([4 * 6, 6 * 16, 4 * 16], rel=1e-4)
    assert elements[:, 8].tolist() == pytest.approx([2 * 3, 3 * 8, 2 * 8], rel=1e-4)
    assert torch.isfinite(loop).all()
    assert loop_of(batch, 0) == pytest.approx([4, 2, 4 * 6 + 6 * 16], rel=1e-4)
    assert loop_of(batch, 1) == pytest.approx([16, 8, 2 * 3 + 3 * 8], rel=1e-4)


def test_a_kernel_without_inputs_reads_nothing_in_one_step():
    batch = kernel([(8, 32)], (), (16, 4))
    batch.config[0, 16:18] = torch.tensor([8.0, 2.0])
    assert loop_of(batch, 0) == pytest.approx([4, 1, 1], rel=1e-4)


@pytest.mark.parametrize(
    ("workgroup", "vector", "runs"),
    [
        ((32, 4), (8, 2), [4 * 32, 8]),
        ((32, 8), (32, 2), [8 * 32 * 5, 2 * 32]),
        ((16, 8), (16, 1), [16, 16]),
    ],
)
def test_the_elements_of_whole_minor_dimensions_are_contiguous(workgroup, vector, runs):
    batch = kernel([(5, 8, 32), (5, 8, 32)], (), (*workgroup, 5))
    batch.config[0, 16:19] = torch.tensor([*map(float, vector), 1.0])
    _, pieces = VectorTilePart(4).words(batch)
    assert torch.exp(pieces[0, 1, 6::8]).tolist() == pytest.approx(runs, rel=1e-4)


def test_registers_know_what_vectors_leave_over():
    batch = kernel([(7, 40), (7, 40)], (), (40, 7))
    batch.config[0, 16:18] = torch.tensor([16.0, 1.0])
    words, _ = VectorTilePart(4).words(batch)
    *_, minor, next_minor, third, minor_is_scalar, next_is_scalar = words[0].tolist()
    assert (minor, next_minor, third) == (1, 0, 0), "40 elements are not whole vectors of 16"
    assert (minor_is_scalar, next_is_scalar) == (0, 1)
