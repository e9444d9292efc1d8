"""Answers of faulty servers are errors, and what an answer may have is read."""

import asyncio

import grpc
import numpy as np
import pytest
from fake_server import answered, fake_server, ranking_of

from hlorank import (
    AnswerError,
    AsyncClient,
    Client,
    Fusions,
    Graph,
    KernelTime,
    RefusedError,
    Tiles,
)
from hlorank.wire.messages import ListMeasurementsResponse
from hlorank.wire.messages import RankConfigsStreamResponse as Part

GRAPH = Graph.from_hlo_proto(b"module")
TILES = Tiles(output_bounds=[[1], [2]])
GRAPH_HASH = bytes(32)
MODEL = {"name": "some", "version": 1}
STARTED = Part(started={"graph_hash": GRAPH_HASH, "model": MODEL})


@pytest.mark.parametrize(
    "answer",
    [
        Part(scores={}),
        Part(started={"graph_hash": b"short"}),
        Part(started={"graph_hash": GRAPH_HASH, "model": {}}),
    ],
)
def test_a_stream_that_starts_wrong_is_ended(answer):
    async def ask(address):
        async with AsyncClient(address) as client:
            with pytest.raises(AnswerError):
                await client.rank_stream(GRAPH)
            assert await asyncio.to_thread(server.ended.wait, 10)

    with fake_server(answer) as server, Client(server.address) as client:
        with pytest.raises(AnswerError):
            client.rank_stream(GRAPH)
        assert server.ended.wait(10)
    with fake_server(answer) as server:
        asyncio.run(ask(server.address))


def test_an_answer_without_a_model_is_told():
    with answered(b"") as client, pytest.raises(AnswerError, match="contains no model"):
        client.get_model("some")


def test_measurements_without_one_value_each_are_an_error():
    kept = {"target": "a", "graph_hash": GRAPH_HASH, "batch": TILES.wire, "seconds": [1, 1]}
    page = ListMeasurementsResponse(graphs=[kept | {"repeats": [1, 1], "ids": [b"a"]}])
    with answered(page) as client, pytest.raises(AnswerError, match="lengths"):
        client.list_measurements()


@pytest.mark.parametrize(
    ("asked", "fields", "message"),
    [
        ({}, {"ranking": [1, 2]}, "configuration 2, but only 2 were scored"),
        ({}, {"ranking": [1, 1]}, "a configuration twice"),
        ({}, {"ranking": [1]}, "1 configurations instead of 2"),
        ({}, {"ranking_scores": [-1.0]}, "1 scores for 2 ranked"),
        ({}, {"ranking_scores": [-1.0, float("nan")]}, "not finite"),
        ({}, {"ranking_scores": [-1.0, -2.0]}, "not sorted"),
        ({}, {"scored_configs": 0}, "0 of 2 configurations"),
        ({}, {"scored_configs": 1}, "1 of 2 configurations"),
        ({}, {"graph_hash": b"short"}, "5 bytes, not 32"),
        ({}, {"model": {}}, "does not name the model"),
        ({"allow_partial": True}, {"scored_configs": 0}, "0 of 2 configurations"),
        ({"allow_partial": True}, {"scored_configs": 3}, "3 of 2 configurations"),
        ({"with_scores": True}, {"scores": [1.0, float("inf")]}, "not finite"),
        ({"with_scores": True}, {"scores": [1.0, -2.0]}, "differ"),
        ({"with_scores": True}, {"scores": [1.0, 2.0, 3.0]}, "3 scores for 2 configurations"),
    ],
)
def test_an_impossible_ranking_is_an_error(asked, fields, message):
    valid = {"ranking": [1, 0], "model": MODEL}
    answer = ranking_of([-1.0, 1.0], **(valid | fields))
    with answered(answer) as client, pytest.raises(AnswerError, match=message):
        client.rank(GRAPH, TILES, **asked)


@pytest.mark.parametrize(
    ("last", "message"),
    [
        ({"scores": {"first_config": 1, "scores": [1.0, -1.0]}}, "at configuration 1 instead of 0"),
        ({"scores": {"scores": [1.0, float("nan")]}}, "not finite"),
        ({"scores": {"scores": [3.0]}}, "1 scores for 2 configurations"),
        ({"ranking": {"ranking": [1, 0], "scored_configs": 2}}, "0 scores for 2 ranked"),
        ({"ranking": {"ranking": [1, 2], "ranking_scores": [0, 1], "scored_configs": 2}}, "2,"),
        ({"ranking": {"scored_configs": 1}}, "1 of 2 configurations"),
    ],
)
def test_an_impossible_answer_in_a_stream_is_an_error(last, message):
    answers = [STARTED]
    if "ranking" in last:
        last["ranking"]["graph_hash"] = GRAPH_HASH
        answers.append(Part(scores={"scores": [1.0, -1.0]}))
    with answered(*answers, Part(**last)) as client, client.rank_stream(GRAPH) as stream:
        stream.send(TILES)
        with pytest.raises(AnswerError, match=message):
            stream.finish()


def test_a_batch_that_was_not_sent_has_no_scores():
    with answered(STARTED) as client:
        stream = client.rank_stream(GRAPH)
        stream.cancel()
        sent = 0
        for _ in range(100):
            try:
                stream.send(TILES)
                sent += 1
            except RefusedError as refused:
                assert refused.code == grpc.StatusCode.CANCELLED
        # Some before it is known that the call has ended.
        assert len(stream._unscored) == sent < 100


def test_scores_of_fusions_are_seconds_and_may_be_infinite():
    kernels = [{"kernels": [{"node": 7, "computed_nodes": 3, "seconds": 0.001}]}, {}]
    graph = Graph.from_hlo_proto(b"module", task="fusion")
    fusions = Fusions([[True, False, True], [False, False, True]])
    scores = {"scores": [float("inf"), 0.001]}
    fields = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")], "unit": 1}
    fields |= {"scored_configs": 2, "graph_hash": GRAPH_HASH, "model": MODEL}
    answers = STARTED, Part(scores=scores), Part(ranking=fields)
    with answered(*answers) as client, client.rank_stream(graph) as stream:
        stream.send(fusions)
        assert np.isinf(stream.scores().scores[0])
        streamed = stream.finish()
    predicted = {"predicted_seconds": [0.001, float("inf")], "kernels": kernels}
    answer = ranking_of([], **fields, **scores, **predicted)
    with fake_server(answer) as server, Client(server.address) as client:
        ranked = client.rank(graph, fusions, with_scores=True, explain_top=2)
    assert server.requests[0].explain_top == 2
    assert ranked.unit == streamed.unit == "seconds" and ranked.best.tolist() == [1, 0]
    assert ranked.scores.tolist() == [np.inf, np.float32(0.001)]
    assert ranked.predicted_seconds.tolist() == ranked.best_scores.tolist()
    [(kernel,), none] = ranked.kernels
    assert kernel == KernelTime(7, 3, pytest.approx(0.001)) and none == ()
    assert streamed.kernels == ()
