import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import numpy as np
import pytest
from servers import run_server

from hlorank import (
    AsyncClient,
    BatchTooLongError,
    Client,
    DeadlineError,
    Graph,
    InvalidRequestError,
    Layouts,
    RefusedError,
)

DEFAULT_MODELS = {"layout": "layout-xla-cpu", "tile": "tile-iree-cpu"}


def fresh(measured):
    """The graph of a measured one, of which no server has told the hash."""
    whole = measured.graph.whole()
    nodes = whole.configurable_nodes
    return Graph.from_hlo_proto(
        whole.hlo_module, task=measured.graph.task, configurable_nodes=nodes
    )


def test_the_best_are_those_of_the_lowest_scores(ranker, layout_graph, tile_graph):
    for measured in (layout_graph, tile_graph):
        ranking = ranker.rank(measured.graph, measured.configurations, top_k=5, with_scores=True)
        order = np.argsort(ranking.scores, kind="stable")
        assert ranking.best.tolist() == order[:5].tolist()
        assert ranking.best_scores.tolist() == ranking.scores[order[:5]].tolist()
        assert ranking.best.dtype == np.int64 and ranking.scores.dtype == np.float32
        assert ranking.reuse.configs == len(measured.configurations)
        assert 0 < ranking.timings.total < 60
        assert ranking.model.name == DEFAULT_MODELS[measured.graph.task]


def test_scores_come_where_they_are_asked_for_also_of_a_ranking_that_may_be_partial(
    ranker, tile_graph
):
    graph, configurations = tile_graph.graph, tile_graph.configurations
    assert ranker.rank(graph, configurations).scores is None
    ranking = ranker.rank(graph, configurations, with_scores=True, allow_partial=True)
    assert ranking.scored == len(ranking.scores) == len(configurations)
    assert sorted(ranking.best) == list(range(len(configurations)))


def test_a_named_version_answers(ranker, layout_graph):
    version = ranker.get_model("layout-xla-cpu-sage").version
    named = f"layout-xla-cpu-sage@{version}"
    ranking = ranker.rank(layout_graph.graph, layout_graph.configurations, model=named)
    assert str(ranking.model) == named


def test_a_cached_graph_tells_its_slots(ranker, layout_graph):
    graph = fresh(layout_graph)
    cached = ranker.put_graph(graph)
    assert graph.hash == cached.hash
    nodes = [node.node for node in cached.configurable_nodes]
    assert nodes == list(graph.whole().configurable_nodes)
    assert {node.opcode for node in cached.configurable_nodes} <= {"convolution", "dot", "reshape"}


def test_a_graph_that_the_server_has_not_is_sent_again(ranker, tile_graph):
    graph = fresh(tile_graph)
    graph.learn(bytes(32))
    expected = ranker.rank(tile_graph.graph, tile_graph.configurations)
    assert ranker.rank(graph, tile_graph.configurations).best.tolist() == expected.best.tolist()
    assert graph.hash == expected.graph_hash
    graph.learn(bytes(32))
    with ranker.rank_stream(graph) as stream:
        stream.send(tile_graph.configurations)
        assert stream.finish().best.tolist() == expected.best.tolist()


def batches(measured):
    values = measured.configurations.values()
    return [Layouts(part) for part in np.array_split(values, 4)]


def test_a_stream_ranks_over_its_batches(ranker, layout_graph):
    lone = ranker.rank(layout_graph.graph, layout_graph.configurations, with_scores=True)
    with ranker.rank_stream(layout_graph.graph, top_k=3) as stream:
        assert stream.model == lone.model
        assert stream.scores() is None
        taken = []
        for batch in batches(layout_graph):
            stream.send(batch)
            taken.append(stream.scores())
        ranking = stream.finish()
    sizes = [len(batch) for batch in batches(layout_graph)]
    assert [scored.first for scored in taken] == [0, *np.cumsum(sizes)[:-1]]
    assert np.concatenate([scored.scores for scored in taken]).tolist() == lone.scores.tolist()
    assert ranking.best.tolist() == lone.best[:3].tolist()
    assert ranking.reuse.configs == len(layout_graph.configurations)
    assert ranking.timings.total > sum(scored.timings.total for scored in taken)


def test_a_batch_that_is_too_long_is_refused_and_the_stream_goes_on(server, ranker, layout_graph):
    ranker.put_graph(layout_graph.graph)  # so that its hash goes in a short message
    values = layout_graph.configurations.values()
    with (
        Client(server, message_bytes=6_000) as client,
        client.rank_stream(layout_graph.graph) as stream,
    ):
        with pytest.raises(BatchTooLongError, match="the maximum message length is 6000"):
            stream.send(Layouts(np.tile(values, (200, 1, 1, 1))))
        stream.send(layout_graph.configurations)
        assert len(stream.finish().best) == len(layout_graph.configurations)


def test_a_deadline_of_0_has_passed(server, ranker, tile_graph):
    for call in (
        lambda: ranker.rank(tile_graph.graph, tile_graph.configurations, timeout=0),
        lambda: ranker.rank_stream(tile_graph.graph, timeout=0),
    ):
        with pytest.raises(DeadlineError):
            call()
    with Client(server, timeout=0) as client:
        with pytest.raises(DeadlineError):
            client.list_models()
        assert client.list_models(timeout=10)


def test_a_proxy_of_the_environment_is_passed_by(server, layout_graph, monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("no_grpc_proxy", raising=False)

    async def ask():
        async with (
            AsyncClient(server, retries=0) as client,
            await client.rank_stream(layout_graph.graph),
        ):
            return await client.list_models()

    with Client(server, retries=0) as client:
        assert client.list_models() == asyncio.run(ask())


def test_calls_of_many_threads_share_a_client(ranker, tile_graph):
    with ThreadPoolExecutor(8) as threads:
        calls = [
            threads.submit(ranker.rank, tile_graph.graph, tile_graph.configurations)
            for _ in range(64)
        ]
        assert len({tuple(call.result().best) for call in calls}) == 1


def test_the_async_client_ranks_and_streams_alike(server, ranker, layout_graph):
    expected = ranker.rank(layout_graph.graph, layout_graph.configurations, with_scores=True)

    async def ask():
        async with AsyncClient(server) as client:
            calls = (client.rank(layout_graph.graph, layout_graph.configurations) for _ in range(8))
            rankings = await asyncio.gather(*calls)
            assert await client.put_graph(layout_graph.graph)
            assert await client.get_model("tile-iree-cpu") in await client.list_models()
            async with await client.rank_stream(layout_graph.graph, top_k=3) as stream:
                for batch in batches(layout_graph):
                    await stream.send(batch)
                first = await stream.scores()
                return rankings, first, await stream.finish()

    rankings, first, ranking = asyncio.run(ask())
    assert all(one.best.tolist() == expected.best.tolist() for one in rankings)
    assert first.scores.tolist() == expected.scores[: len(batches(layout_graph)[0])].tolist()
    assert ranking.best.tolist() == expected.best[:3].tolist()


def test_a_stream_that_is_left_is_cancelled(layout_graph):
    with run_server("--max-requests=1") as address, Client(address, retries=0) as client:
        with client.rank_stream(layout_graph.graph) as stream:
            stream.send(layout_graph.configurations)
        with Client(address) as other:
            ranking = other.rank(layout_graph.graph, layout_graph.configurations)
            assert len(ranking.best) == len(layout_graph.configurations)


def test_waiting_for_scores_that_never_come_can_be_given_up(server, layout_graph):
    async def ask():
        async with AsyncClient(server) as client:
            stream = await client.rank_stream(layout_graph.graph)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(stream._exchange.read(), 0.2)
            with pytest.raises(RefusedError) as refused:
                await stream.send(layout_graph.configurations)
                await stream.scores()
            assert refused.value.code == grpc.StatusCode.CANCELLED

    asyncio.run(ask())


def stream_threads():
    return [thread for thread in threading.enumerate() if "hlorank-stream" in thread.name]


@pytest.mark.parametrize("end", ["finish", "cancel", "refusal"])
def test_a_stream_that_has_ended_leaves_no_threads(server, layout_graph, end):
    async def ask():
        async with AsyncClient(server) as client:
            stream = await client.rank_stream(layout_graph.graph)
            await stream.send(layout_graph.configurations)
            assert stream_threads()
            if end == "finish":
                await stream.finish()
            elif end == "cancel":
                stream.cancel()
            else:
                await stream.send(Layouts(np.full((2, 1, 18), -1)))
                with pytest.raises(InvalidRequestError, match="batch 1") as refused:
                    await stream.finish()
                assert refused.value.reason == "WRONG_COUNT"
            patience = time.monotonic() + 10
            while stream_threads() and time.monotonic() < patience:
                await asyncio.sleep(0.01)
            assert not stream_threads()
            # What is asked after the end is answered alike.
            if end != "finish":
                with pytest.raises(RefusedError):
                    await stream.send(layout_graph.configurations)

    asyncio.run(ask())
