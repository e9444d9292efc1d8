import numpy as np
import pytest
from servers import DATA

from hlorank import Graph, GraphFileError

MODULE = DATA / "hlo/cnn_train.before_opt.hlo_module.pb"
TEXT = DATA / "hlo/cnn_train.before_opt.hlo.txt"


def test_modules_texts_and_files_are_sent_as_they_are(tmp_path):
    message = Graph.from_hlo_proto(b"module", task="tile", configurable_nodes=[3, 1]).whole()
    assert (message.hlo_module, message.task) == (b"module", 1)
    assert list(message.configurable_nodes) == [3, 1]
    message = Graph.from_hlo_text("HloModule m").whole()
    assert (message.WhichOneof("source"), message.hlo_text) == ("hlo_text", "HloModule m")
    assert message.task == 2
    assert Graph.from_file(MODULE).whole().hlo_module == MODULE.read_bytes()
    path = tmp_path / "commented.txt"
    path.write_text(f"// a comment\n/* HloProto */ {TEXT.read_text()}")
    assert Graph.from_file(path).whole().hlo_text == path.read_text()


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


FEATURES = {"node_opcode": [1, 1], "node_feat": np.zeros((2, 140)), "edge_index": [[1, 0]]}
LOOPS = {"feature_set": "loops", "node_features": np.ones((2, 3)), "edge_index": [[1, 0]]}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            FEATURES | {"node_feat": np.zeros(140)},
            r"node_feat has shape \[140\], expected \[nodes, columns\]",
        ),
        (
            FEATURES | {"edge_index": np.zeros((1, 3))},
            r"edge_index has shape \[1, 3\], expected \[edges, 2\]",
        ),
        (FEATURES | {"edge_index": [[0, -1]]}, "edge_index has values that are not integers from"),
        (FEATURES | {"edge_index": [[1, 0.5]]}, "edge_index has values that are not integers"),
        (FEATURES | {"edge_index": [["a", "b"]]}, "edge_index has type .*expected integers"),
        (FEATURES | {"node_opcode": [0, 256]}, "node_opcode has values that are not"),
        (FEATURES | {"operands": [-1]}, "operands has values"),
        (LOOPS | {"node_features": [1.0]}, r"shape \[1\], expected \[nodes, columns\]"),
        (LOOPS | {"node_features": [[], []]}, "at least one of each"),
        (LOOPS | {"node_features": np.zeros((2, 0))}, r"\[2, 0\]"),
        (LOOPS | {"node_features": [["a"]]}, "expected numbers"),
        (LOOPS | {"edge_index": [1, 0]}, r"edge_index has shape \[2\], expected \[edges, 2\]"),
    ],
)
def test_arrays_that_are_no_graph_are_refused_with_the_place(changed, message):
    with pytest.raises(GraphFileError, match=message):
        if "feature_set" in changed:
            Graph.from_feature_set(**changed)
        else:
            Graph.from_features(**changed, task="layout")


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


def test_a_kernel_takes_its_operands():
    for operands in ([0, 2, 1, 0, 0, 0, 0], []):
        graph = Graph.from_features(**FEATURES, task="tile", operands=operands)
        assert list(graph.whole().features.operands) == operands
