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
    Graph,
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


@pytest.mark.parametrize("edges", [[], np.zeros((0, 2), int)])
def test_a_graph_has_the_name_the_columns_and_the_edges(edges):
    sent = Graph.from_feature_set("loops", np.array(NODES), edges).whole()
    assert sent.task == 4 and not sent.feature_graph.edges
    assert (sent.feature_graph.feature_set, sent.feature_graph.nodes) == ("loops", 2)
    columns = np.frombuffer(sent.feature_graph.node_features, "<f4").reshape(2, 3)
    assert columns.tolist() == NODES
    assert list(loops().whole().feature_graph.edges) == [1, 0]


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
