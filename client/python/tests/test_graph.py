import numpy as np
import pytest
from servers import DATA

from hlorank import Graph, GraphFileError

MODULE = DATA / "hlo/cnn_train.before_opt.hlo_module.pb"
TEXT = DATA / "hlo/cnn_train.before_opt.hlo.txt"


def test_a_module_is_sent_as_it_is():
    message = Graph.from_hlo_proto(b"module", task="tile", configurable_nodes=[3, 1]).whole()
    assert (message.hlo_module, message.task) == (b"module", 1)
    assert list(message.configurable_nodes) == [3, 1]


def test_text_is_sent_as_it_is():
    message = Graph.from_hlo_text("HloModule m").whole()
    assert message.WhichOneof("source") == "hlo_text"
    assert (message.hlo_text, message.task) == ("HloModule m", 2)


def test_a_graph_goes_by_hash_once_it_is_known():
    graph = Graph.from_hlo_proto(b"module")
    assert graph.by_hash() is None
    graph.learn(bytes(32))
    assert graph.by_hash().graph_hash == bytes(32)


def test_the_route_is_that_of_the_bytes():
    assert Graph.from_hlo_proto(b"a").route == Graph.from_hlo_proto(b"a", task="tile").route
    assert Graph.from_hlo_proto(b"a").route == Graph.from_hlo_text("a").route
    assert Graph.from_hlo_proto(b"a").route != Graph.from_hlo_proto(b"b").route


def test_another_task_is_refused():
    with pytest.raises(ValueError, match="'kernel', expected one of tile, layout, fusion"):
        Graph.from_hlo_proto(b"", task="kernel")


def features(pad):
    features = np.zeros((2, 140))
    for first, width in ((31, 6), (95, 4), (101, 4), (134, 6)):
        features[:, first + 1 : first + width] = pad
    return features


@pytest.mark.parametrize("pad", [0, -1])
def test_features_are_sent_in_one_form(pad):
    edges = np.array([[1, 0], [0, 1], [1, 0]])
    graph = Graph.from_features(
        [63, 200], np.where(features(pad), features(pad), -0.0), edges, task="layout"
    )
    sent = graph.whole().features
    assert sent.pad_value == pad
    assert sent.node_opcode == bytes([63, 0])
    assert list(sent.edge_index) == [0, 1, 1, 0]
    values = np.frombuffer(sent.node_feat, "<f4").reshape(2, 140)
    assert (values == features(pad)).all()
    assert not np.signbit(values[values == 0]).any()


def test_lists_that_go_on_after_their_pad_are_not_padded():
    broken = features(-1)
    broken[1, 36] = 3
    graph = Graph.from_features([1, 1], broken, np.zeros((0, 2)), task="tile")
    assert graph.whole().features.pad_value == 0


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"node_feat": np.zeros(140)}, r"node_feat has shape \[140\], expected \[nodes, columns\]"),
        ({"edge_index": np.zeros((1, 3))}, r"edge_index has shape \[1, 3\], expected \[edges, 2\]"),
        ({"edge_index": [[0, -1]]}, "edge_index has values that are not"),
        ({"node_opcode": [0, 256]}, "node_opcode has values that are not"),
        ({"node_opcode": [0, 0.5]}, "node_opcode has values that are not"),
    ],
)
def test_other_arrays_are_refused(changed, message):
    arrays = {"node_opcode": [1, 1], "node_feat": np.zeros((2, 140)), "edge_index": [[1, 0]]}
    with pytest.raises(GraphFileError, match=message):
        Graph.from_features(**(arrays | changed), task="layout")


def test_a_file_is_sent_as_it_is(tmp_path):
    assert Graph.from_file(MODULE).whole().hlo_module == MODULE.read_bytes()
    path = tmp_path / "commented.txt"
    path.write_text(f"// a comment\n/* HloProto */ {TEXT.read_text()}")
    assert Graph.from_file(path).whole().hlo_text == path.read_text()


def test_a_graph_prints_what_it_is():
    graph = Graph.from_hlo_text("HloModule m")
    assert repr(graph) == "Graph(hlo text of 15 bytes, task='layout', not sent yet)"


def test_a_lowered_function_is_the_module_that_jax_made_of_it():
    jax = pytest.importorskip("jax")
    lowered = jax.jit(lambda a, b: a @ b).lower(np.zeros((2, 3)), np.zeros((3, 4)))
    assert b"dot" in Graph.from_lowered(lowered).whole().hlo_module


def test_a_space_of_parameters_has_an_empty_array_of_node_features():
    """As the file of such a graph has it."""
    empty = Graph.from_feature_set("gemm", np.zeros((1, 0)), config_columns=["m"])
    assert empty.whole() == Graph.from_feature_set("gemm", config_columns=["m"]).whole()
    with pytest.raises(GraphFileError, match=r"\[2, 0\]"):
        Graph.from_feature_set("gemm", np.zeros((2, 0)), config_columns=["m"])


def test_a_kernel_takes_its_operands():
    arrays = ([63, 63], np.zeros((2, 140)), [])
    graph = Graph.from_features(*arrays, task="tile", operands=[0, 2, 1, 0, 0, 0, 0])
    assert list(graph.whole().features.operands) == [0, 2, 1, 0, 0, 0, 0]
    assert list(Graph.from_features(*arrays, task="tile").whole().features.operands) == []
    with pytest.raises(GraphFileError, match="operands has values"):
        Graph.from_features(*arrays, task="tile", operands=[-1])
