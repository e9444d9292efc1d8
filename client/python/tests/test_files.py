import time

import numpy as np
import pytest
from servers import DATA

from hlorank import Graph, GraphFileError, Layouts, Tiles, read_graphs
from hlorank.messages import ModuleTuningData

LAYOUTS = DATA / "measured/layout_random_window_reversed.pb"
TILES = DATA / "measured/tile_kernels.pb"
MODULE = DATA / "hlo/mlp_train.before_opt.hlo_module.pb"
FEATURES = DATA / "hlo/mlp_train.before_opt.features.npz"


def npz(path, **arrays):
    with np.load(FEATURES) as features:
        np.savez(path, **{name: features[name] for name in features} | arrays)
    return path


def test_a_layout_file_has_one_graph_and_its_runs():
    [measured] = read_graphs(LAYOUTS)
    assert measured.name == "jit_window_reversed"
    assert measured.graph.task == "layout"
    assert len(measured.configurations) == len(measured.run_times) == 41
    assert measured.configurations.slots == len(measured.graph.whole().configurable_nodes)


def test_a_tile_file_has_many_graphs():
    kernels = read_graphs(TILES)
    assert [kernel.graph.task for kernel in kernels] == ["tile"] * 5
    assert all(len(kernel.configurations) == len(kernel.run_times) for kernel in kernels)
    assert Graph.from_file(TILES, module=4).whole() == kernels[4].graph.whole()
    with pytest.raises(GraphFileError, match="graph 5 does not exist, the file has 5"):
        Graph.from_file(TILES, module=5)


def test_runs_that_failed_are_left_out(tmp_path):
    tuning = ModuleTuningData.FromString(LAYOUTS.read_bytes())
    tuning.runs[0].error = True
    tuning.runs[1].profile.compute_time_ns = 0
    del tuning.runs[2].module_config.layout_config.nodes[0]
    path = tmp_path / "failed.pb"
    path.write_bytes(tuning.SerializeToString())
    whole, [left] = read_graphs(LAYOUTS)[0], read_graphs(path)
    assert left.run_times.tolist() == whole.run_times[3:].tolist()
    assert (left.configurations.values() == whole.configurations.values()[3:]).all()


def test_a_layout_npz_has_its_configurable_nodes(tmp_path):
    values = np.random.default_rng(1).integers(-1, 6, (7, 3, 18)).astype(np.float32)
    path = npz(
        tmp_path / "layout.npz",
        node_config_feat=values,
        node_config_ids=np.array([49.0, 30.0, 7.0]),
        config_runtime=np.arange(7),
    )
    [measured] = read_graphs(path)
    assert list(measured.graph.whole().configurable_nodes) == [49, 30, 7]
    assert isinstance(measured.configurations, Layouts)
    assert (measured.configurations.values().reshape(7, 3, 18) == values).all()
    assert measured.run_times.tolist() == list(range(7))


def test_a_tile_npz_has_its_tiles(tmp_path):
    tiles = Tiles(output_bounds=[[8, 128], [16, 64]])
    times = np.array([3, 4])
    path = npz(tmp_path / "tile.npz", config_feat=tiles.features(), config_runtime=times)
    [measured] = read_graphs(path)
    assert measured.graph.task == "tile"
    assert measured.configurations.wire == tiles.wire


def test_a_file_without_configurations_is_of_the_task_that_is_asked_for():
    assert read_graphs(FEATURES)[0].configurations is None
    assert Graph.from_file(FEATURES, task="tile").task == "tile"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "this is an empty file; rank HLO text"),
        (b"\x1f\x8b gzip", "this is compressed, and its data is broken or cut off"),
        (b"PK\x03\x04 broken", "cannot read the npz: File is not a zip file"),
        (b"HloModule m, \xff", "the text is not UTF-8"),
    ],
)
def test_other_files_are_refused_by_name(tmp_path, content, message):
    path = tmp_path / "broken.bin"
    path.write_bytes(content)
    with pytest.raises(GraphFileError, match=rf"broken\.bin: {message}"):
        read_graphs(path)


@pytest.mark.parametrize("comment", [b"/**/", b"/* a */ ", b"//\n", b" \n"])
def test_many_comments_are_passed_at_once(tmp_path, comment):
    path = tmp_path / "comments.txt"
    path.write_bytes(comment * 200 + b"x")
    start = time.monotonic()
    with pytest.raises(GraphFileError, match="this is text without an HLO module"):
        read_graphs(path)
    assert time.monotonic() - start < 20
    path.write_bytes(comment * 200 + b"HloModule m")
    assert read_graphs(path)[0].graph.whole().WhichOneof("source") == "hlo_text"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("source", [LAYOUTS, TILES, FEATURES, MODULE], ids=lambda path: path.name)
def test_a_damaged_file_is_read_or_refused_by_name(tmp_path, source):
    path = tmp_path / "damaged.bin"
    data, draw = source.read_bytes(), np.random.default_rng(5)
    refused = 0
    for number in range(200):
        damaged = bytearray(data)
        # Lengths and headers are at the ends and in the first bytes of what is inside.
        region = len(data) if number % 2 else min(len(data), 400)
        for place in draw.integers(region, size=1 + number % 4):
            damaged[place if number % 4 < 2 else -1 - place] ^= draw.integers(1, 256)
        path.write_bytes(damaged)
        try:
            read_graphs(path)
        except GraphFileError as error:
            assert str(error).startswith(f"{path}: ")
            refused += 1
    assert refused > 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"config_runtime": np.arange(3)}, r"config_runtime`: has shape \[3\], expected \[2\]"),
        ({"config_runtime": np.zeros((2, 1))}, r"config_runtime`: has shape \[2, 1\]"),
        ({"config_runtime": np.array([1, 2.5])}, r"config_runtime\[1\] is 2.5, not a whole number"),
        ({"node_config_ids": np.arange(4)}, "because the graph has 4 slots"),
        ({"node_config_ids": np.array([1, 2, 0.5])}, r"node_config_ids\[2\] is 0.5, not a whole"),
        ({"node_config_ids": np.array([1, -2, 0])}, r"node_config_ids\[1\] is -2, expected a node"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(tmp_path, wrong, message):
    arrays = {
        "node_config_feat": np.full((2, 3, 18), -1),
        "node_config_ids": np.array([49, 30, 7]),
        "config_runtime": np.array([1.0, 2.0]),
    }
    assert read_graphs(npz(tmp_path / "whole.npz", **arrays))[0].run_times.dtype == np.int64
    with pytest.raises(GraphFileError, match=rf"broken\.npz: .*{message}"):
        read_graphs(npz(tmp_path / "broken.npz", **arrays | wrong))


def test_nodes_without_configurations_are_kept(tmp_path):
    path = npz(tmp_path / "bare.npz", node_config_ids=np.array([49.0, 30.0]))
    assert list(Graph.from_file(path).whole().configurable_nodes) == [49, 30]


def test_a_node_that_no_number_has_is_refused(tmp_path):
    tuning = ModuleTuningData.FromString(LAYOUTS.read_bytes())
    tuning.config_index_to_node[1] = 1 << 32
    path = tmp_path / "broken.pb"
    path.write_bytes(tuning.SerializeToString())
    with pytest.raises(GraphFileError, match=r"config_index_to_node\[1\] is 4294967296"):
        read_graphs(path)


def test_a_missing_array_is_named(tmp_path):
    path = tmp_path / "half.npz"
    np.savez(path, node_opcode=np.zeros(3, np.uint8))
    with pytest.raises(GraphFileError, match=r"half\.npz: array `node_feat`: missing"):
        read_graphs(path)


def test_a_missing_file_is_an_error_of_this_library(tmp_path):
    with pytest.raises(GraphFileError, match=r"absent\.hlo cannot be read: No such file"):
        read_graphs(tmp_path / "absent.hlo")
