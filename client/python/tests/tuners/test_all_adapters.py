"""What all adapters have in common, each with its real tuner: a server that is away or keeps
nothing, decisions, and when an adapter is made.

The tests of an adapter have a function ``tune`` that tunes a key, and returns how many
configurations were measured, and what is used. ``TUNES`` is the least number that a tuner measures
that knows nothing, and ``DECIDED`` what it measures of a decision. ``OTHER`` is the value of
another decision, with what is used then, and ``MISFIT`` one that fits nothing. ``DEFAULT`` is what
is used without a decision; with None, the tuner goes on.
"""

import pickle
import time
from importlib import import_module

import pytest
from fake_server import fake_server
from servers import run_empty_server, run_server_that_keeps_nothing, said_once

from hlorank import ArgumentError, Client, DecisionKey

ADAPTERS = {
    "helion": ("Autotuner", {}),
    "inductor": ("Choices", {}),
    "kernel_tuner": ("Strategy", {}),
    "optuna": ("Sampler", {"name": "toy"}),
    "triton": ("Pruner", {}),
    "tvm": ("CostModel", {}),
}


@pytest.fixture(params=ADAPTERS)
def host(request, monkeypatch, tmp_path):
    """The tests of an adapter."""
    tests = import_module(f"test_{request.param}")
    if hasattr(tests, "prepare"):
        tests.prepare(monkeypatch, tmp_path)
    return tests


def assert_tuned(host, adapter, *keys):
    """Tunes as if nothing was known."""
    assert all(host.tune(adapter, key)[0] >= host.TUNES for key in keys)


def test_a_server_that_keeps_nothing_is_said_once(host, tmp_path):
    with run_server_that_keeps_nothing(tmp_path) as address, Client(address) as client:
        assert_tuned(host, host.adapter(client, "off"), 0, 1)


def test_a_killed_server_costs_one_warning_and_no_measurement(host, tmp_path):
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:
        adapter = host.adapter(client, "killed")
        host.tune(adapter, 0)
        server.kill()
        with said_once():
            assert_tuned(host, adapter, 1, 2)


def test_what_one_process_found_is_used_by_all_and_measured_by_none(host, client):
    first, second = (host.adapter(client, "decided", decide=True) for _ in range(2))
    measured, used = host.tune(first, 0)
    assert measured >= host.TUNES and used is not None
    assert host.tune(second, 0) == (host.DECIDED, used)
    (decision,) = client.list_decisions(first.namespace, "decided").decisions
    assert decision.evidence.seconds > 0


def test_a_process_that_another_one_overtook_uses_what_that_one_found(host, client):
    value, used = host.OTHER
    adapter = host.adapter(client, "overtaken", decide=True)
    agree = adapter.agree

    def late(key, *rest):
        client.propose(DecisionKey(adapter.namespace, key, "overtaken"), value)
        return agree(key, *rest)

    adapter.agree = late
    assert host.tune(adapter, 0)[1] == used


def test_a_decision_that_does_not_fit_is_a_miss_with_one_warning(host, client):
    adapter = host.adapter(client, "misfits", decide=True)
    decided = adapter.decided

    def misfit(key, read):
        client.propose(DecisionKey(adapter.namespace, key, "misfits"), host.MISFIT)
        return decided(key, read)

    adapter.decided = misfit
    with said_once("does not fit"):
        assert_tuned(host, adapter, 0, 1)


def test_without_the_server_nothing_is_decided_and_the_wait_is_short(host):
    with Client("127.0.0.1:1", timeout=1) as client:
        adapter = host.adapter(client, "away", decide=True)
        decided, waits = adapter.decided, []

        def timed(*arguments):
            begin = time.monotonic()
            try:
                return decided(*arguments)
            finally:
                waits.append(time.monotonic() - begin)

        adapter.decided = timed
        with said_once():
            found = [host.tune(adapter, key) for key in range(3)]
    assert sum(waits) <= 2.5
    if host.DEFAULT is None:
        assert all(measured >= host.TUNES for measured, _ in found)
    else:
        assert found == [(0, host.DEFAULT)] * 3


def test_tuning_that_fails_decides_nothing_and_leaves_the_turn_to_others(host, client):
    first, second = (host.adapter(client, "failing", decide=True) for _ in range(2))
    host.tune(first, 0, fails=True)
    assert not client.list_decisions(first.namespace, "failing").decisions
    begin = time.monotonic()
    assert_tuned(host, second, 0)
    assert time.monotonic() - begin < 10, "nobody waits for the claim's end"


def test_garbage_from_the_server_is_a_miss(host):
    with fake_server(b"\xff\xff") as server, Client(server.address, timeout=1) as client:
        adapter = host.adapter(client, "garbage", decide=True)
        with said_once():
            assert_tuned(host, adapter, 0, 1)


def made(module, **options):
    """An adapter without a server."""
    name, further = ADAPTERS[module]
    adapter = getattr(pytest.importorskip(f"hlorank.tuners.{module}"), name)
    return adapter(Client("127.0.0.1:1"), **({"target": "a board"} | further | options))


@pytest.mark.parametrize(
    ("module", "wrong", "words"),
    [
        *((module, {"target": ""}, "target is ''") for module in ADAPTERS),
        *((module, {"other_targets": "b"}, "other_targets is 'b'") for module in ADAPTERS),
        ("kernel_tuner", {"seed": -1}, "seed is -1"),
        ("optuna", {"seed": 0.5}, "seed is 0.5"),
        ("optuna", {"search_space": {"tile": [1, 2]}}, r"search_space\['tile'\] is \[1, 2\]"),
        ("optuna", {"decide": True}, "search_space is None"),
        ("kernel_tuner", {"decide": True, "on_away": "later"}, "on_away is 'later'"),
        ("inductor", {"decide": True, "group": "all"}, "group is 'all'"),
        ("triton", {"top_k": 0}, "top_k is 0"),
        ("triton", {"decide": "always"}, "decide is 'always'"),
        ("tvm", {"exploration": -1}, "exploration is -1"),
        ("tvm", {"seed": None}, "seed is None"),
    ],
)
def test_an_argument_is_refused_by_its_name_when_an_adapter_is_made(module, wrong, words):
    with pytest.raises(ArgumentError, match=words):
        made(module, **wrong)


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_says_that_each_process_makes_its_own(module):
    words = "has a connection, which has no copy: .* make a Client in each"
    with pytest.raises(ArgumentError, match=f"a {ADAPTERS[module][0]} {words}"):
        pickle.dumps(made(module))
