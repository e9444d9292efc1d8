import numpy as np
import pytest
from fake_server import answered

from hlorank import (
    Fusions,
    Graph,
    KernelTime,
)
from hlorank.wire.messages import (
    RankConfigsResponse,
    RankConfigsStreamResponse,
)

GRAPH_HASH = bytes(32)
MODEL = {"name": "fusion-xla-cpu", "version": 1}
FUSIONS = Fusions([[True, False, True], [False, False, True]])
SECONDS = 1


def program():
    return Graph.from_hlo_proto(b"module", task="fusion")


def ranking(**fields):
    valid = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")], "scored_configs": 2}
    valid |= {"predicted_seconds": [0.001, float("inf")], "unit": SECONDS}
    valid |= {"graph_hash": GRAPH_HASH, "model": MODEL}
    return RankConfigsResponse(**(valid | fields)).SerializeToString()


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
