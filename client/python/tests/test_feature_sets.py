import numpy as np
import pytest
from servers import DATA, run_server

from hlorank import Client, ConfigFeatures, Graph

REGISTRY = DATA / "loop_nests/registry"
"""A model of the feature set of docs/bring-your-own-compiler.md, alone."""


def test_a_server_ranks_either_form_and_streams_alike():
    with np.load(REGISTRY / "loop-nests/1/golden.npz") as arrays:
        name = arrays["0/feature_set"].tobytes().decode()
        graph = Graph.from_feature_set(name, arrays["0/node_features"], arrays["0/edge_index"])
        values, expected = arrays["0/config_features"], arrays["0/score"]
    often = ConfigFeatures(np.repeat(values, 4, axis=0))
    once = ConfigFeatures(values)
    assert often.wire.node_feature_configs.rows and not once.wire.node_feature_configs.rows

    with run_server(f"--models={REGISTRY}") as address, Client(address) as client:
        dense = client.rank(graph, once, with_scores=True)
        table = client.rank(graph, often, with_scores=True)
        with client.rank_stream(graph) as stream:
            stream.send(once)
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
