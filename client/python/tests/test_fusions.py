import grpc
import numpy as np
import pytest
from fake_server import answered, fake_server

from hlorank import (
    Client,
    Fusions,
    Graph,
    KernelTime,
    RefusedError,
)
from hlorank.wire.messages import (
    PutGraphResponse,
    RankConfigsRequest,
    RankConfigsResponse,
    RankConfigsStreamResponse,
)

GRAPH_HASH = bytes(32)
MODEL = {"name": "fusion-xla-cpu", "version": 1}
FUSIONS = Fusions([[True, False, True], [False, False, True]])
SECONDS, LOG_SECONDS = 1, 2


def program():
    return Graph.from_hlo_proto(b"module", task="fusion")


def ranking(**fields):
    valid = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")], "scored_configs": 2}
    valid |= {"predicted_seconds": [0.001, float("inf")], "unit": SECONDS}
    valid |= {"graph_hash": GRAPH_HASH, "model": MODEL}
    return RankConfigsResponse(**(valid | fields)).SerializeToString()


def test_the_request_has_the_task_the_bits_and_how_many_to_explain():
    with (
        fake_server(code=grpc.StatusCode.INVALID_ARGUMENT) as server,
        Client(server.address) as client,
    ):
        with pytest.raises(RefusedError):
            client.rank(program(), FUSIONS, top_k=2, explain_top=1)
        [(method, _, message)] = server.calls
    request = RankConfigsRequest.FromString(message)
    assert method.endswith("/RankConfigs") and request.graph.task == 3
    assert (request.top_k, request.explain_top) == (2, 1)
    assert request.batch == FUSIONS.wire


def test_scores_are_seconds_and_the_kernels_of_the_best_are_explained():
    kernels = [{"kernels": [{"node": 7, "computed_nodes": 3, "seconds": 0.001}]}, {}]
    answer = ranking(scores=[float("inf"), 0.001], kernels=kernels)
    with answered(answer) as client:
        ranked = client.rank(program(), FUSIONS, with_scores=True, explain_top=2)
    assert ranked.unit == "seconds" and ranked.best.tolist() == [1, 0]
    assert ranked.scores.tolist() == [np.inf, np.float32(0.001)]
    assert ranked.predicted_seconds.tolist() == ranked.best_scores.tolist()
    [(kernel,), none] = ranked.kernels
    assert kernel == KernelTime(7, 3, pytest.approx(0.001)) and none == ()


def test_a_stream_keeps_infinite_scores_and_the_unit():
    started = {"graph_hash": GRAPH_HASH, "model": MODEL}
    scores = {"scores": [float("inf"), 0.001]}
    last = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")], "unit": SECONDS}
    last |= {"scored_configs": 2, "graph_hash": GRAPH_HASH, "model": MODEL}
    parts = ({"started": started}, {"scores": scores}, {"ranking": last})
    answers = [RankConfigsStreamResponse(**part).SerializeToString() for part in parts]
    with (
        answered(*answers) as client,
        client.rank_stream(program()) as stream,
    ):
        stream.send(FUSIONS)
        assert np.isinf(stream.scores().scores[0])
        ranked = stream.finish()
    assert ranked.unit == "seconds" and ranked.kernels == ()


def test_a_cached_program_has_slots():
    node = {"node": 5, "name": "add.5", "opcode": "add", "dimensions": [4, 8]}
    answer = PutGraphResponse(graph_hash=GRAPH_HASH, configurable_nodes=[node])
    with answered(answer.SerializeToString()) as client:
        cached = client.put_graph(program())
    assert [(slot.node, slot.opcode) for slot in cached.configurable_nodes] == [(5, "add")]
