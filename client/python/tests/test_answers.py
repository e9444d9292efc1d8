import asyncio

import grpc
import pytest
from fake_server import answered, fake_server

from hlorank import AnswerError, AsyncClient, Client, Graph, RefusedError, Tiles
from hlorank.wire.messages import GetModelResponse, RankConfigsResponse, RankConfigsStreamResponse

TILES = Tiles(output_bounds=[[1], [2]])
GRAPH_HASH = bytes(32)


def part(**fields):
    return RankConfigsStreamResponse(**fields).SerializeToString()


def started(name="some"):
    return part(started={"graph_hash": GRAPH_HASH, "model": {"name": name, "version": 1}})


def ranking(**fields):
    valid = {"ranking": [1, 0], "ranking_scores": [-1.0, 1.0], "scored_configs": 2}
    valid |= {"graph_hash": GRAPH_HASH, "model": {"name": "some", "version": 1}}
    return RankConfigsResponse(**(valid | fields)).SerializeToString()


@pytest.mark.parametrize(
    "answer", [part(scores={}), part(started={"graph_hash": b"short"}), started(name="")]
)
def test_a_stream_that_starts_wrong_is_ended(answer):
    graph = Graph.from_hlo_proto(b"module")

    async def ask(address):
        async with AsyncClient(address) as client:
            with pytest.raises(AnswerError):
                await client.rank_stream(graph)
            assert await asyncio.to_thread(server.ended.wait, 10)

    with fake_server(answer) as server, Client(server.address) as client:
        with pytest.raises(AnswerError):
            client.rank_stream(graph)
        assert server.ended.wait(10)
    with fake_server(answer) as server:
        asyncio.run(ask(server.address))


def test_an_answer_without_a_model_is_told():
    wrong = GetModelResponse().SerializeToString()
    with answered(wrong) as client, pytest.raises(AnswerError, match="contains no model"):
        client.get_model("some")


PARTIAL = {"allow_partial": True}
WITH_SCORES = {"with_scores": True}


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
        (PARTIAL, {"scored_configs": 0}, "0 of 2 configurations"),
        (PARTIAL, {"scored_configs": 3}, "3 of 2 configurations"),
        (WITH_SCORES, {"scores": [1.0, float("inf")]}, "not finite"),
        (WITH_SCORES, {"scores": [1.0, -2.0]}, "differ"),
        (WITH_SCORES, {"scores": [1.0, 2.0, 3.0]}, "3 scores for 2 configurations"),
    ],
)
def test_an_impossible_ranking_is_an_error(asked, fields, message):
    graph = Graph.from_hlo_proto(b"module")
    with answered(ranking(**fields)) as client, pytest.raises(AnswerError, match=message):
        client.rank(graph, TILES, **asked)


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
    graph, answers = Graph.from_hlo_proto(b"module"), [started()]
    if "ranking" in last:
        last["ranking"]["graph_hash"] = GRAPH_HASH
        answers.append(part(scores={"scores": [1.0, -1.0]}))
    with (
        answered(*answers, part(**last)) as client,
        client.rank_stream(graph) as stream,
    ):
        stream.send(TILES)
        with pytest.raises(AnswerError, match=message):
            stream.finish()


def test_a_batch_that_was_not_sent_has_no_scores():
    graph = Graph.from_hlo_proto(b"module")
    with answered(started()) as client:
        stream = client.rank_stream(graph)
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
