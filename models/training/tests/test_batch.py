import numpy as np
import pytest

from hlorank_training.data.batch import make_batch, score
from hlorank_training.data.dataset import NOT_CONFIGURABLE, read_graph


@pytest.fixture
def layout_file(tmp_path):
    """Two segments: nodes 1-2-3 with two configurable nodes, and nodes 5-6 with one."""
    random = np.random.default_rng(0)
    config = random.integers(-1, 3, (6, 3, 18)).astype(np.float32)
    config[0] = -1
    config[4, :2] = config[3, :2]
    path = tmp_path / "small.npz"
    np.savez(
        path,
        node_feat=random.random((8, 140), dtype=np.float32),
        node_opcode=np.arange(8, dtype=np.uint8),
        edge_index=np.array([[2, 1], [3, 2], [4, 3], [6, 5]]),
        node_config_ids=np.array([1, 3, 6]),
        node_config_feat=config,
        config_runtime=np.array([50, 40, 30, 20, 10, 60]),
        pruned_node_ids=np.array([1, 2, 3, 5, 6]),
        pruned_edge_index=np.array([[1, 0], [2, 1], [4, 3]]),
        pruned_segment=np.array([0, 0, 0, 1, 1]),
    )
    return path


@pytest.fixture
def tile_file(tmp_path):
    """A chain of 600 nodes that was cut after 512, with two distinct tiles."""
    random = np.random.default_rng(0)
    tiles = random.integers(1, 9, (2, 24)).astype(np.float32)
    chain = np.stack([np.arange(1, 600), np.arange(599)], 1)
    path = tmp_path / "kernel.npz"
    np.savez(
        path,
        node_feat=random.random((600, 140), dtype=np.float32),
        node_opcode=(np.arange(600) % 100).astype(np.uint8),
        edge_index=chain,
        config_feat=tiles[[0, 1, 0]],
        config_runtime=np.array([50, 40, 30]),
        config_runtime_normalizers=np.array([50, 50, 50]),
        pruned_node_ids=np.arange(600),
        pruned_edge_index=chain,
        pruned_segment=np.arange(600) // 512,
    )
    return path


def test_every_segment_of_a_large_kernel_sees_the_same_tile(tile_file):
    graph = read_graph(tile_file, "kernel")
    first, second = graph.segments
    assert (len(first.opcode), len(second.opcode)) == (512, 88)
    assert (first.operands.sum(), second.operands.sum()) == (511, 87), "no edge between them"
    with np.load(tile_file) as arrays:
        for segment in graph.segments:
            assert len(segment.local) == 2
            assert (segment.local[segment.choice] == arrays["config_feat"]).all()
    batch = make_batch([graph], [np.arange(3)])
    assert [bucket.inputs[3].shape for bucket in batch.buckets] == [(1, 96), (1, 512)]
    assert all(bucket.configuration.tolist() == [0, 1, 2] for bucket in batch.buckets)


def test_a_graph_has_its_default_and_a_segment_its_nodes_edges_and_local_configurations(
    layout_file,
):
    graph = read_graph(layout_file, "small")
    # The first configuration leaves every node to the compiler.
    assert graph.default_runtime == 50
    first, second = graph.segments
    assert first.opcode.tolist() == [1, 2, 3]
    assert second.opcode.tolist() == [5, 6]
    assert first.operands.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert (first.local[:, 1] == NOT_CONFIGURABLE).all()
    assert first.choice[3] == first.choice[4]
    with np.load(layout_file) as arrays:
        assert (first.local[first.choice][:, [0, 2]] == arrays["node_config_feat"][:, :2]).all()
        assert (second.local[second.choice][:, 1] == arrays["node_config_feat"][:, 2]).all()


def test_equal_local_configurations_share_one_row(layout_file):
    graph = read_graph(layout_file, "small")
    batch = make_batch([graph], [np.array([3, 4])])
    rows = {b.inputs[3].shape[1]: len(b.inputs[4]) for b in batch.buckets}
    assert rows == {4: 3}, "one shared row of the first segment, two of the second"


def test_a_configuration_is_the_sum_of_its_segments(layout_file):
    graph = read_graph(layout_file, "small")
    batch = make_batch([graph, graph], [np.arange(6), np.array([2, 0])])

    def encode(inputs):
        _, features, _, mask, segment, config = inputs
        static = (features.sum(2) * mask).sum(1)[segment]
        return np.stack([static, config.clip(-1).sum((1, 2))], 1).astype(np.float32)

    scores = score(batch, encode, lambda total: total[:, 1])
    # A node that is not configurable, padding included, counts as 18 times -1 here.
    with np.load(layout_file) as arrays:
        chosen = arrays["node_config_feat"].sum((1, 2)) - 18 * (2 * 4 - 3)
    assert scores == pytest.approx(np.concatenate([chosen, chosen[[2, 0]]]))
    assert [r.tolist() for r in batch.runtimes] == [[50, 40, 30, 20, 10, 60], [30, 50]]
