import grpc
import numpy as np
import pytest
from fake_server import fake_server
from measured import form_of
from servers import DATA, run_server

from hlorank import (
    Adapt,
    Client,
    ConfigFeatures,
    ConfigurationError,
    Graph,
    GraphFileError,
    RefusedError,
)
from hlorank.wire.messages import RankConfigsRequest, SuggestConfigsRequest

REGISTRY = DATA / "loop_nests/registry"
"""A model of the feature set of docs/bring-your-own-compiler.md, alone."""
NODES = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
EDGES = [[1, 0]]


def drawn(configs, nodes, columns, kinds=1000):
    """Columns of every node, taken from some kinds of rows."""
    draw = np.random.default_rng(7)
    return draw.random((kinds, columns), np.float32)[draw.integers(kinds, size=(configs, nodes))]


def loops():
    return Graph.from_feature_set("loops", NODES, EDGES)


@pytest.mark.parametrize("kinds", [1, 5, 1000])
def test_values_come_back(kinds):
    values = drawn(20, 4, 3, kinds)
    configs = ConfigFeatures(values.astype(np.float64))
    assert (len(configs), configs.nodes, configs.columns) == (20, 4, 3)
    assert configs.values().dtype == np.float32 and np.array_equal(configs.values(), values)


def test_distinct_rows_are_sent_if_that_is_shorter():
    form, often = form_of(ConfigFeatures(drawn(20, 4, 3, kinds=5)))
    assert form == "node_feature_configs" and len(often.rows) == 5 * 3 * 4 and not often.features
    _, seldom = form_of(ConfigFeatures(drawn(20, 4, 3)))
    assert len(seldom.features) == 20 * 4 * 3 * 4 and not seldom.rows


def test_rows_with_indices_are_the_values_that_they_stand_for():
    rows = [[1, 2], [3, 4], [1, 2], [5, 6]]
    configs = ConfigFeatures.from_rows(rows, [[3, 0], [2, 0], [0, 0]])
    assert configs.values().tolist() == [[[5, 6], [1, 2]], [[1, 2], [1, 2]], [[1, 2], [1, 2]]]
    _, table = form_of(ConfigFeatures(np.repeat(configs.values(), 9, axis=0)))
    assert np.frombuffer(table.rows, "<f4").tolist() == [5, 6, 1, 2], "used ones, each once"
    indices = np.frombuffer(table.row_indices, "<u4").reshape(-1, 2)[::9]
    assert indices.tolist() == [[0, 1], [1, 1], [1, 1]]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            [[[1.0, 2.0], [3.0, np.nan]]],
            "configuration 0, node 1, column 1 is nan",
        ),
        ([[[1.0]], [[-np.inf]]], "config_features: configuration 1, node 0, column 0 is -inf"),
        ([[[1e39]]], r"column 0 is 1e\+39, expected a finite f32"),
        ([[1.0, 2.0]], r"shape \[1, 2\], expected \[configurations, nodes, columns\]"),
        (np.zeros((0, 2, 3)), "at least one of each"),
        (np.zeros((2, 0, 3)), "at least one of each"),
        (np.zeros((2, 3, 0)), "at least one of each"),
        ([[["a"]]], "expected numbers"),
        ([[[1j]]], "expected numbers"),
        ([[[1.0], [1.0, 2.0]]], "config_features is not an array"),
    ],
)
def test_configurations_that_no_graph_has_are_refused_with_the_place(values, words):
    with pytest.raises(ConfigurationError, match=words):
        ConfigFeatures(values)


@pytest.mark.parametrize(
    ("rows", "indices", "words"),
    [
        ([[1.0]], [[0, 1]], "configuration 0, node 1 has row 1, but there are 1 rows"),
        ([[1.0]], [[0], [-1]], "configuration 1, node 0 has row -1"),
        ([[1.0]], [0], r"shape \[1\]"),
        ([[1.0]], [[0.0]], "type float64"),
        ([[1.0]], np.zeros((0, 2), int), "at least one"),
        ([[1.0], [np.inf]], [[0]], "rows: row 1, column 0 is inf"),
        ([1.0], [[0]], r"expected \[rows, columns\]"),
    ],
)
def test_rows_and_indices_that_do_not_fit_are_refused(rows, indices, words):
    with pytest.raises(ConfigurationError, match=words):
        ConfigFeatures.from_rows(rows, indices)


@pytest.mark.parametrize("edges", [[], np.zeros((0, 2), int)])
def test_a_graph_has_the_name_the_columns_and_the_edges(edges):
    sent = Graph.from_feature_set("loops", np.array(NODES), edges).whole()
    assert sent.task == 4 and not sent.feature_graph.edges
    assert (sent.feature_graph.feature_set, sent.feature_graph.nodes) == ("loops", 2)
    columns = np.frombuffer(sent.feature_graph.node_features, "<f4").reshape(2, 3)
    assert columns.tolist() == NODES
    assert list(loops().whole().feature_graph.edges) == [1, 0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"feature_set": ""}, "the name of the feature set is ''"),
        ({"feature_set": 'a"b'}, "printable ASCII"),
        ({"feature_set": "é"}, "printable ASCII"),
        ({"feature_set": "a" * 129}, "expected 1 to 128"),
        ({"node_features": [[1.0], [np.nan]]}, "node_features: node 1, column 0 is nan"),
        ({"node_features": [1.0]}, r"shape \[1\], expected \[nodes, columns\]"),
        ({"node_features": [[], []]}, "at least one of each"),
        ({"node_features": [["a"]]}, "expected numbers"),
        ({"edge_index": [[1, 2]]}, "edge_index has values that are not integers from 0 to 1"),
        ({"edge_index": [[1, 0.5]]}, "not integers"),
        ({"edge_index": [["a", "b"]]}, "expected integers"),
        ({"edge_index": [1, 0]}, r"edge_index has shape \[2\], expected \[edges, 2\]"),
        ({"edge_index": [[1, 0], [1]]}, "edge_index is not an array"),
    ],
)
def test_arrays_that_are_no_graph_are_refused_with_the_place(changed, words):
    arrays = {"feature_set": "loops", "node_features": NODES, "edge_index": EDGES}
    with pytest.raises(GraphFileError, match=words):
        Graph.from_feature_set(**arrays | changed)


def test_the_request_has_the_task_the_graph_and_the_configurations():
    configs, measured_ones = ConfigFeatures(drawn(2, 2, 3)), ConfigFeatures(drawn(3, 2, 3))
    adapt = Adapt("this machine", measured_ones, [0.1, 0.2, 0.3])
    with (
        fake_server(code=grpc.StatusCode.INVALID_ARGUMENT) as server,
        Client(server.address) as client,
    ):
        with pytest.raises(RefusedError):
            client.rank(loops(), configs, adapt=adapt)
        with pytest.raises(RefusedError):
            client.suggest(loops(), configs, adapt=adapt)
        [(_, _, ranked), (_, _, suggested)] = server.calls
    for kind, message in (RankConfigsRequest, ranked), (SuggestConfigsRequest, suggested):
        request = kind.FromString(message)
        assert request.graph == loops().whole()
        assert request.batch.node_feature_configs == form_of(configs)[1]
        assert request.adapt.batch.node_feature_configs == form_of(measured_ones)[1]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    kept = tmp_path_factory.mktemp("kept") / "measurements"
    with run_server(f"--models={REGISTRY}", f"--measurements={kept}") as address:
        yield address


@pytest.fixture
def golden():
    """A graph, configurations, and the scores that the model must return."""
    with np.load(REGISTRY / "loop-nests/1/golden.npz") as arrays:
        name = arrays["0/feature_set"].tobytes().decode()
        graph = Graph.from_feature_set(name, arrays["0/node_features"], arrays["0/edge_index"])
        return graph, arrays["0/config_features"], arrays["0/score"]


def test_a_server_ranks_either_form_and_streams_alike(address, golden):
    graph, values, expected = golden
    often = ConfigFeatures(np.repeat(values, 4, axis=0))
    assert form_of(often)[1].rows and not form_of(ConfigFeatures(values))[1].rows

    with Client(address) as client:
        dense = client.rank(graph, ConfigFeatures(values), with_scores=True)
        table = client.rank(graph, often, with_scores=True)
        with client.rank_stream(graph) as stream:
            stream.send(ConfigFeatures(values))
            stream.send(often)
            streamed = stream.finish()
        cached = client.put_graph(graph)
        model = client.get_model("loop-nests")
    assert dense.scores == pytest.approx(expected, rel=1e-4)
    assert dense.model.name == "loop-nests" and dense.unit == "seconds"
    assert table.scores.tolist() == np.repeat(dense.scores, 4).tolist()
    assert table.reuse.distinct_configs == len(values)
    assert len(streamed.best) == 5 * len(values) and streamed.best[0] == dense.best[0]
    assert (cached.hash, cached.nodes) == (dense.graph_hash, values.shape[1])
    assert len(model.feature_set.config_features) == values.shape[2]


def test_a_server_learns_suggests_and_keeps_measurements(address, golden):
    graph, values, _ = golden
    configs = ConfigFeatures(values)
    seconds = [0.001 * 2**number for number in range(len(values))]
    adapt = Adapt("this machine", configs, seconds)
    with Client(address) as client:
        assert client.rank(graph, configs, adapt=adapt).adaptation.adapted
        few = Adapt("this machine", ConfigFeatures(values[:4]), seconds[:4])
        (suggested,) = client.suggest(graph, configs, adapt=few).suggestions
        assert suggested.config >= 4
        reported = client.report_measurements(graph, adapt)
        (kept,) = client.list_measurements("this machine").graphs
        assert client.delete_target("this machine") == reported.accepted
    order = [seconds.index(each) for each in kept.seconds]
    assert np.array_equal(kept.configurations.values(), values[order])
