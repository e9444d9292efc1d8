"""Leases of a real server: what one worker measures, no other one is suggested."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import grpc
import pytest
from fake_server import answered, fake_server
from gemm import SPACE

from hlorank import AnswerError, Client, Lease, RefusedError, Space
from hlorank.wire.messages import SearchState, SuggestConfigsResponse


def away(*_, **__):
    raise RefusedError(grpc.StatusCode.INTERNAL, "away")


def search_of(client, target, worker, **terms):
    return client.search(SPACE, target, lease=Lease(worker, **terms))


def test_what_is_leased_is_suggested_to_its_worker_alone_and_reported_with_its_machine(client):
    first, second = (search_of(client, "alone", name, machine=f"m{name}") for name in "ab")
    (one,) = first.suggest()
    assert one not in second.suggest(8)
    (again,) = search_of(client, "alone", "a").suggest()
    assert again == one, "a worker that lost the answer gets it again"
    (other,) = first.suggest()
    assert other != one, "but threads of a worker get different ones"
    first.report(one, 1.0)
    (kept,) = client.list_measurements("alone").graphs
    assert kept.machines == ("ma",)


def test_a_list_that_the_server_knows_is_not_sent_again():
    answer = SuggestConfigsResponse(
        graph_hash=bytes(32), state=SearchState.SEARCH_STATE_EXHAUSTED, batch_digest=bytes(32)
    )
    space = Space("large", {"a": list(range(150)), "b": list(range(120))})
    with fake_server(answer) as server, Client(server.address) as client:
        search = client.search(space, "a board", lease=Lease("a", budget=5, budget_time=3600))
        search.suggest()
        search.suggest()
    first, second = server.requests
    assert first.ByteSize() > 100_000 and second.ByteSize() <= 1024
    assert second.batch_digest == bytes(32) and not second.HasField("batch")
    budget = second.lease.budget
    assert (budget.measurements, budget.time.seconds) == (5, 3600)


def test_a_server_that_forgot_a_list_gets_it_again(client):
    # Threads share the space and learn together that the server does not know it.
    searches = [search_of(client, "forgotten", f"worker {number}") for number in range(8)]
    searches[0].suggest()
    SPACE.configurations().digest = bytes(32)
    with ThreadPoolExecutor() as threads:
        suggested = [*threads.map(lambda search: search.suggest(), searches)]
    assert all(len(one) == 1 for one in suggested)
    assert SPACE.configurations().digest not in (b"", bytes(32))


def test_an_answer_without_the_leases_is_none():
    answer = SuggestConfigsResponse(graph_hash=bytes(32), state=SearchState.SEARCH_STATE_RUNNING)
    answer.suggestions.add(config=0)
    words = "0 leases for 1 suggestions"
    with answered(answer) as client, pytest.raises(AnswerError, match=words):
        search_of(client, "a board", "a").suggest()


def test_measurements_without_a_lease_are_reported_apart(client):
    search = search_of(client, "mixed", "a")
    (one,) = search.suggest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "report_measurements", away)
        for each in (one, SPACE[(SPACE.number(one) + 1) % len(SPACE)]):
            with pytest.raises(RefusedError):
                search.report(each, 1.0)
    search.flush()
    assert len(search.fastest()) == 2


def test_requests_name_the_search_and_the_leases():
    answer = SuggestConfigsResponse(graph_hash=bytes(32), state=SearchState.SEARCH_STATE_RUNNING)
    answer.suggestions.add(config=2)
    answer.leases.add(id=bytes(range(16)), attempt=1, config=bytes(32))
    with fake_server(answer) as server, Client(server.address) as client:
        search = search_of(client, "a board", "a", search="mine", machine="m")
        search.suggest()
        # The same answer to other calls may be none of theirs.
        with suppress(AnswerError):
            search.renew()
        with suppress(AnswerError):
            search.report(2, 1.0)
    _, renewed, reported = server.requests
    assert (renewed.search, renewed.worker, renewed.target) == ("mine", "a", "a board")
    assert list(renewed.ids) == [bytes(range(16))] and list(renewed.configs) == [bytes(32)]
    assert list(reported.leases) == [bytes(range(16))]
    assert (reported.search, reported.machine) == ("mine", "m")
