"""What a configuration does to a node, on graphs small enough to work out by hand."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training.layout_part import LayoutPart  # noqa: E402
from hlorank_training.segment_batch import FEATURES, SegmentBatch  # noqa: E402
from hlorank_training.tile_part import READ, STEPS, TilePart  # noqa: E402

PARAMETER, OTHER = 63, 30


def features(shapes: list[tuple[int, ...]], root: int) -> torch.Tensor:
    """Raw features that hold nothing but output shapes and which node is the root."""
    rows = torch.zeros(1, len(shapes), FEATURES)
    rows[0, root, 0] = 1
    for node, shape in enumerate(shapes):
        rows[0, node, 21 : 21 + len(shape)] = torch.tensor(shape, dtype=torch.float32)
    return rows


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
    rows = features(shapes, nodes - 1)
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


def layouts(*nodes: tuple[int, ...]) -> SegmentBatch:
    """A chain of matrices [4, 8]: node 1 reads node 0. Slots are output, first, second input."""
    config = torch.full((1, len(nodes), 18), -1)
    for node, entry in enumerate(nodes):
        for tensor, minor_to_major in enumerate(entry):
            if minor_to_major:
                config[0, node, 6 * tensor : 6 * tensor + 2] = torch.tensor(minor_to_major)
    edges = torch.zeros(1, 2, 2)
    edges[0, 1, 0] = 1
    rows = features([(4, 8), (4, 8)], 1)
    segment = torch.zeros(1, dtype=torch.long)
    opcode = torch.full((1, 2), OTHER)
    return SegmentBatch(opcode, rows, edges, torch.ones(1, 2), segment, config)


ROWS, COLUMNS, ANY = (1, 0), (0, 1), ()


@pytest.mark.parametrize(
    ("written", "asked", "moved"),
    [
        (ANY, ANY, 0),
        (ROWS, ANY, 0),
        (COLUMNS, COLUMNS, 0),
        (COLUMNS, ANY, 32),
        (ANY, COLUMNS, 32),
        (COLUMNS, ROWS, 32),
    ],
)
def test_data_moves_where_a_node_asks_for_another_order_than_was_written(written, asked, moved):
    changes, amounts = LayoutPart(4, 0).words(layouts((written, ANY, ANY), (ANY, asked, ANY)))
    reader = changes[0, 1, -3:] ** 2 * 2**16
    assert reader.tolist() == pytest.approx([moved, 32 if written == COLUMNS else 0, 0])
    assert float(amounts[0, 2, 1]) * 2**16 == pytest.approx(float(reader.sum()), rel=1e-4)
