"""Decisions: whoever proposes first decides for all, and what happens while the server is away."""

import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import Queue

import grpc
import pytest
from fake_server import answered, fake_server
from servers import run_empty_server, run_process, said_once

from hlorank import (
    AnswerError,
    ArgumentError,
    Client,
    DecisionKey,
    Evidence,
    HlorankError,
    UnavailableError,
)
from hlorank.wire.messages import DecideResponse
from hlorank.worker.agreement import Agreement


def key_of(name, target="device=H100;triton=3.9.0"):
    return DecisionKey("triton", name.encode(), target)


def test_the_first_proposal_is_what_everybody_gets_until_it_is_superseded_on_purpose(client):
    key, evidence = key_of("first"), Evidence(0.25, 5, 72, 0.02, "m1")
    first = client.propose(key, b'{"a": 1}', evidence)
    assert first == client.propose(key, b'{"a": 2}') == client.decide(key).decision
    assert (first.value, first.generation, first.evidence) == (b'{"a": 1}', 1, evidence)
    other = client.decide(key_of("first", "device=H100;triton=3.10.0"))
    assert other.state == "undecided" and other.decision is None
    (near,) = other.near
    assert near.decision == first and near.different_parts == ("triton",)
    second = client.propose(key, b'{"a": 2}', supersede=1)
    assert second.generation == 2 and client.decide(key).decision == second
    assert client.decide(key, snapshot=first.snapshot).decision == first
    younger = client.propose(key_of("younger"), b"{}")
    strict = client.decide(younger.key, snapshot=first.snapshot, strict=True)
    assert strict.state == "undecided"
    page = client.list_decisions("triton", key.target, after_snapshot=first.snapshot)
    assert list(page.decisions) == [second, younger] and not page.next
    assert client.list_decisions(key=b"younger").decisions == (younger,)
    assert repr(page).startswith("2 decisions, all")


def test_answers_that_no_server_gives_are_errors():
    other = DecideResponse()
    other.decided.key.namespace = "xla"
    for answer, words in ((DecideResponse(), "says nothing"), (other, "another key")):
        with answered(answer) as client, pytest.raises(AnswerError, match=words):
            client.decide(key_of("a"))
    claimed = DecideResponse()
    claimed.claimed.SetInParent()
    with answered(claimed) as client, pytest.raises(AnswerError, match="has no decision"):
        client.propose(key_of("a"), b"{}")


def test_processes_that_ask_together_agree_and_one_of_them_tunes(store):
    tuned = []

    def rank(number):
        with Client(store) as client:
            agreement = Agreement(client, "triton", "together")
            verdict = agreement.ask(b"k")
            if verdict.state == "claimed":
                tuned.append(number)
                return agreement.propose(b"k", b'{"rank": %d}' % number)
            return verdict.decision

    with ThreadPoolExecutor(8) as threads:
        found = {decision.value for decision in threads.map(rank, range(8))}
    assert len(found) == len(tuned) == 1


class Rank:
    """A process of a group, as ``torch.distributed`` has them; here each is a thread."""

    def __init__(self, number, queues):
        self.number = number
        self.queues = queues

    def get_rank(self):
        return self.number

    def broadcast_object_list(self, object_list, src):
        if self.number == src:
            sent = pickle.dumps(object_list)
            for queue in self.queues:
                queue.put(sent)
        object_list[:] = pickle.loads(self.queues[self.number].get(timeout=30))


def in_a_group(run, ranks=4):
    """What ``run`` returns on each rank of a group."""
    queues = [Queue() for _ in range(ranks)]
    with ThreadPoolExecutor(ranks) as threads:
        return list(threads.map(run, [Rank(number, queues) for number in range(ranks)]))


def test_the_leader_of_a_group_asks_and_proposes_for_all(client):

    def rank(group):
        agreement = Agreement(client, "triton", "group", group=group)
        verdict = agreement.ask(b"k")
        own = b'{"rank": %d}' % group.number
        return verdict.state, agreement.propose(b"k", own).value, agreement.ask(b"k").decision

    found = in_a_group(rank)
    (decision,) = client.list_decisions("triton", "group").decisions
    assert found == [("claimed", b'{"rank": 0}', decision)] * 4


def test_without_the_server_a_group_has_one_default_or_one_error():
    with Client("127.0.0.1:1") as client:

        def rank(group):
            return Agreement(client, "triton", "g", group=group, timeout=0.5).ask(b"k").state

        def failing(group):
            agreement = Agreement(client, "triton", "g", group=group, timeout=0.5, on_away="fail")
            with pytest.raises(UnavailableError):
                agreement.ask(b"k")

        with pytest.warns(UserWarning, match="the default is used") as warned:
            assert in_a_group(rank) == ["away"] * 4
        in_a_group(failing)
    assert len(warned) == 1


def test_a_rank_that_asks_for_another_key_than_its_leader_is_told(client):

    def rank(group):
        agreement = Agreement(client, "triton", "mixed", group=group)
        if group.number == 0:
            return agreement.ask(b"leader").state
        with pytest.raises(ArgumentError, match="the same in the same order"):
            agreement.ask(b"other")

    in_a_group(rank, 2)


def test_a_group_whose_leader_found_nothing_leaves_the_turn_to_others(client):

    def rank(group):
        agreement = Agreement(client, "triton", "nothing", group=group)
        assert agreement.ask(b"k").state == "claimed"
        return agreement.propose(b"k", b"{}" if group.number else None)

    assert in_a_group(rank) == [None] * 4
    key = key_of("k", "nothing")
    assert client.decide(key, worker="b").state == "claimed"


@pytest.mark.parametrize("raising", [0, 1])
def test_a_rank_that_raises_alone_while_it_tunes_keeps_no_other_one_waiting(raising, client):

    def rank(group):
        agreement = Agreement(client, "triton", f"{raising} raises", group=group)
        decision = None
        with suppress(ZeroDivisionError), agreement.giving_back():
            assert agreement.ask(b"k").state == "claimed"
            _ = 1 / abs(group.number - raising)
            decision = agreement.propose(b"k", b"{}")
        return decision and decision.value, agreement.ask(b"next").state

    found = in_a_group(rank)
    key = key_of("k", f"{raising} raises")
    assert (client.decide(key, worker="b").state == "claimed") == (raising == 0)
    values = [None] * 4 if raising == 0 else [b"{}", None, b"{}", b"{}"]
    assert found == [(value, "claimed") for value in values]


def test_an_error_of_the_leader_is_that_of_all_ranks(client):
    def fail():
        raise KeyError("no such kernel")

    def rank(group):
        agreement = Agreement(client, "triton", "failing", group=group)
        with pytest.raises(HlorankError if group.number else KeyError, match="no such kernel"):
            agreement.from_leader(b"k", fail)

    in_a_group(rank)


def test_a_claim_ends_with_the_block_of_the_thread_that_made_it(client):
    agreement = Agreement(client, "triton", "blocks")
    assert agreement.ask(b"before").state == "claimed"
    with pytest.raises(ZeroDivisionError), agreement.giving_back():
        assert agreement.ask(b"within").state == "claimed"
        with ThreadPoolExecutor() as threads:
            assert threads.submit(agreement.ask, b"other thread").result().state == "claimed"
        _ = 1 / 0
    states = [
        client.decide(DecisionKey("triton", key, "blocks"), worker="b").state
        for key in (b"before", b"within", b"other thread")
    ]
    assert states == ["held", "claimed", "held"]


def test_a_claim_outlives_its_time_while_its_process_tunes(client, monkeypatch):
    monkeypatch.setattr("hlorank.worker.agreement._CLAIM", 5.0)
    agreement = Agreement(client, "triton", "renewed")
    assert agreement.ask(b"k").state == "claimed"
    time.sleep(7)
    held = client.decide(key_of("k", "renewed"), worker="b")
    assert held.state == "held" and 0 < held.retry_after <= 1
    agreement.give_back(b"k")
    claimed = client.decide(key_of("k", "renewed"), worker="b", ttl=5)
    assert claimed.state == "claimed" and claimed.expires_in == pytest.approx(5, abs=1)


def test_a_server_that_is_away_costs_two_seconds_once_and_nothing_is_proposed():
    with Client("127.0.0.1:1") as client:
        agreement = Agreement(client, "triton", "away")
        begin = time.monotonic()
        with said_once("the default is used"):
            assert [agreement.ask(b"%d" % n).state for n in range(50)] == ["away"] * 50
            assert agreement.propose(b"0", b"{}") is None
        assert time.monotonic() - begin <= 2.5


def test_with_wait_a_decision_comes_once_the_server_is_back(tmp_path):
    with run_empty_server(tmp_path) as server, Client(server.address) as client:
        made = client.propose(key_of("k", "back"), b"{}")
        server.kill()
        found = []
        agreement = Agreement(client, "triton", "back", on_away="wait", timeout=0.5)
        with said_once() as caught:
            waiting = threading.Thread(target=lambda: found.append(agreement.ask(b"k")))
            waiting.start()
            while not caught:
                time.sleep(0.05)
            with run_empty_server(tmp_path, server.address):
                waiting.join(60)
    assert [verdict.decision for verdict in found] == [made]


def test_after_an_unknown_outcome_the_default_is_used_and_never_the_own_value():
    held = DecideResponse()
    held.claimed.SetInParent()
    # The claim is answered, and the proposal ends without one.
    with (
        fake_server(held, code=grpc.StatusCode.UNAVAILABLE) as server,
        Client(server.address, retries=0) as client,
        said_once(),
    ):
        agreement = Agreement(client, "triton", "t", timeout=0.5)
        assert agreement.propose(b"k", b"{}") is None
        assert server.requests[0].HasField("propose")


def test_a_server_that_makes_no_decisions_is_said_once_and_everybody_tunes(tmp_path):
    with run_process(f"--models={tmp_path}") as server, Client(server.address) as client:
        agreement = Agreement(client, "triton", "off")
        with said_once():
            assert [agreement.ask(b"%d" % n).state for n in range(3)] == ["off"] * 3
