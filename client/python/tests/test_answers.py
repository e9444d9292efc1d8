import asyncio

import grpc
import pytest
from recording_server import answering_server

from hlorank import AnswerError, AsyncClient, Client, Graph, RefusedError, Tiles
from hlorank.messages import (
    GetModelResponse,
    RankConfigsResponse,
    RankConfigsStreamResponse,
)

TILES = Tiles(output_bounds=[[1], [2]])
GRAPH_HASH = bytes(32)


def part(**fields):
    return RankConfigsStreamResponse(**fields).SerializeToString()


def started(name="some"):
    return part(started={"graph_hash": GRAPH_HASH, "model": {"name": name, "version": 1}})


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

    with answering_server(answer) as server, Client(server.address) as client:
        with pytest.raises(AnswerError):
            client.rank_stream(graph)
        assert server.ended.wait(10)
    with answering_server(answer) as server:
        asyncio.run(ask(server.address))


def test_an_answer_without_a_model_is_told():
    wrong = GetModelResponse().SerializeToString()
    with (
        answering_server(wrong) as server,
        Client(server.address) as client,
        pytest.raises(AnswerError, match="contains no model"),
    ):
        client.get_model("some")


def test_scores_of_another_count_are_told():
    graph = Graph.from_hlo_proto(b"module")
    wrong = RankConfigsResponse(graph_hash=GRAPH_HASH, scores=[1.0, 2.0, 3.0])
    with answering_server(wrong.SerializeToString()) as server, Client(server.address) as client:
        with pytest.raises(AnswerError, match="3 scores for 2 configurations"):
            client.rank(graph, TILES, with_scores=True)
        assert client.rank(graph, TILES).scores is None


def test_scores_of_another_count_are_told_in_a_stream():
    graph = Graph.from_hlo_proto(b"module")
    batches = [part(scores={"scores": scores}) for scores in ([1.0, 2.0], [3.0])]
    with (
        answering_server(started(), *batches) as server,
        Client(server.address) as client,
        client.rank_stream(graph) as stream,
    ):
        stream.send(TILES)
        assert stream.scores().scores.tolist() == [1.0, 2.0]
        stream.send(TILES)
        with pytest.raises(AnswerError, match="1 scores for 2 configurations"):
            stream.scores()


def test_a_batch_that_was_not_sent_has_no_scores():
    graph = Graph.from_hlo_proto(b"module")
    with answering_server(started()) as server, Client(server.address) as client:
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
        assert len(stream._stream.unscored) == sent < 100
