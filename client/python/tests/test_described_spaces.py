"""Spaces that are too large to list."""

import json
import tracemalloc

import numpy as np
import pytest

from hlorank import ArgumentError, Lease, RefusedError, Space, Worker
from hlorank.configurations.described import DescribedConfigs
from hlorank.wire.messages import ColumnValues, ConfigSpace

NAMES = [f"p{number}" for number in range(10)]
VALUES = {name: range(1, 65) for name in NAMES}
SPACE = Space("options", VALUES, constraints="p0 * p1 <= 256")
"""2^60 combinations, of which those count whose first two parameters multiply to at most 256."""


def seconds(one):
    """The farther each parameter is from its best value, the slower; the best takes 1 ms, and a
    random configuration about 20 ms."""
    off = (((one[name] - (12 if name in NAMES[:2] else 40)) / 64) ** 2 for name in NAMES)
    return 1e-3 * float(np.exp(3 * sum(off)))


def test_a_large_product_is_described_and_its_numbers_count_all_combinations():
    assert SPACE.size == len(SPACE) == 1 << 60
    assert "1,152,921,504,606,846,976 combinations, described" in repr(SPACE)
    assert SPACE[1]["p9"] == 2 and SPACE[64]["p8"] == 2
    one = {**SPACE[0], "p0": 8, "p1": 32}
    number = SPACE.number(one)
    assert SPACE[number] == one and SPACE.numbers(SPACE.configurations([one])) == [number]
    assert SPACE.decoded(SPACE.encoded(one)) == one
    with pytest.raises(ArgumentError, match="expected one that the constraints"):
        SPACE.number({**one, "p1": 33})
    with pytest.raises(ArgumentError, match=r"1,152,921,504,606,846,976 combinations .* be listed"):
        SPACE.configurations()
    large = Space("options", {f"p{number:02}": range(1000) for number in range(20)})
    assert large.size == 10**60 and large.number(large[10**59]) == 10**59


def test_a_space_that_can_be_listed_is_listed_whatever_its_constraints_are():
    texts = ["a * b <= 8", "b % a == 0"]
    values = {"a": [1, 2, 4], "b": [1, 2, 3, 4]}
    space = Space("small", values, constraints=[*texts, lambda one: one["a"] > 1])
    assert not space.is_described
    assert list(space) == [{"a": 2, "b": 2}, {"a": 2, "b": 4}]
    both = Space("small", values, constraints=lambda one: one["a"] * one["b"] <= 8)
    assert list(both) == list(Space("small", values, constraints=texts[0]))
    assert both.allows({"a": 2, "b": 4}) and not both.allows({"a": 4, "b": 4})


@pytest.mark.parametrize(
    ("text", "factors", "divisors", "least", "most", "is_whole"),
    [
        ("p0 * p1 <= 1024", [0, 1], [], None, 1024, False),
        ("p0 * 4 <= 49 * p1", [0], [1], None, 12.25, False),
        ("2 <= p3 / p2", [2], [3], None, 0.5, False),
        ("p1 % p0 == 0", [1], [0], None, None, True),
        ("p0 * p1 % (p2 * p3) == 0", [0, 1], [2, 3], None, None, True),
        ("p0 == p1", [0], [1], 1, 1, False),
        ("1 >= 8 / (p0 * p1)", [0, 1], [], 8, None, False),
    ],
)
def test_constraints_are_sent_as_bounds_of_products(text, factors, divisors, least, most, is_whole):
    (sent,) = Space("options", VALUES, constraints=text).description.constraints
    assert (list(sent.factors), list(sent.divisors), sent.is_whole) == (factors, divisors, is_whole)
    assert (sent.least if sent.HasField("least") else None) == least
    assert (sent.most if sent.HasField("most") else None) == most


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("p0 * q <= 1", "there is no parameter 'q'"),
        ("p0 + p1 <= 8", r"'p0 \+ p1 <= 8' cannot be read, such as"),
        ("p0 < p1", "cannot be read"),
        ("1 <= 2", "cannot be read"),
        ("p0 <=", "cannot be read"),
        ("__import__('os') <= p0", "cannot be read"),
        ("p0 <= float('nan')", "cannot be read"),
        ("order * p0 <= 1", "'order' has text"),
    ],
)
def test_constraints_that_no_server_checks_are_refused(text, words):
    with pytest.raises(ArgumentError, match=words):
        Space("options", {**VALUES, "order": ["ij", "ji"]}, constraints=text)


def test_a_search_of_2_to_the_60_comes_within_twice_the_best(learner):
    search = learner.search(SPACE, "from nothing")
    for _ in range(10):
        found = search.suggest(8)
        assert len(found) == 8 and all(SPACE.allows(one) for one in found)
        for one in found:
            search.report(one, seconds(one))
    numbers = {number for number, _ in search._experience.measured}
    assert len(numbers) == 80, "nothing is suggested twice"
    assert search.best[1] < 2e-3
    assert seconds(search.predicted_best()) < 2.5e-3
    assert search.predicted_best(search.best[0]) is not None
    with pytest.raises(ArgumentError, match="cannot be listed"):
        search.rank()


def test_what_a_function_does_not_allow_is_invalid_and_teaches(learner):
    even = Space("options", VALUES, constraints=["p0 * p1 <= 256", lambda one: one["p2"] % 2 == 0])
    search = learner.search(even, "even")
    found = search.suggest(16)
    assert found and all(one["p2"] % 2 == 0 for one in found)
    failures = [result.failure for _, result in search._experience.measured]
    assert failures and set(failures) == {"invalid"}
    with pytest.raises(ArgumentError, match="expected one that the constraints"):
        search.report({**found[0], "p2": 3}, 1.0)
    never = Space("options", VALUES, constraints=lambda one: False)
    with pytest.raises(ArgumentError, match="allow no suggestion; write them as text"):
        learner.search(never, "never").suggest()


def test_a_small_space_that_is_described_is_exhausted(learner):
    columns = [ColumnValues(values=[1, 2, 3]), *[ColumnValues(values=[1])] * 9]
    asked = DescribedConfigs(ConfigSpace(columns=columns), SPACE.configurations([SPACE[0]]))
    found = learner.suggest(SPACE.graph, asked, count=8).combinations
    assert sorted(found.values()[:, 0, 0].tolist()) == [2, 3]


def test_too_many_values_or_parameters_are_refused(learner):
    columns = {f"p{number}": [1, 2] for number in range(1025)}
    for values, words in (({**VALUES, "p0": range(5000)}, r"\[0\] has no"), (columns, " has 1025")):
        with pytest.raises(RefusedError, match=f"space.columns{words}"):
            learner.search(Space("options", values), "refused").suggest()


def test_memory_does_not_grow_with_the_space(learner):
    learner.search(SPACE, "memory").suggest()
    tracemalloc.start()
    learner.search(SPACE, "memory").suggest(4)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_workers_share_a_space_and_measure_nothing_twice(client):
    def worker(name):
        return client.search(SPACE, "described", lease=Lease(name, budget=24))

    first, second, third = map(worker, "abc")
    given = [first.suggest(3), second.suggest(64)]
    first.renew()
    numbers = [SPACE.number(one) for each in given for one in each]
    assert len(given[1]) == 21 and len({*numbers}) == 24, "what others hold counts"
    assert third.suggest() == [] and third.state == "all_leased" and third.retry_after > 0
    second.renew(give_back=True)
    for search, each in ((first, given[0]), (third, third.suggest(21))):
        for one in each:
            search.report(one, seconds(one))
    assert second.suggest() == [] and second.state == "budget_spent"
    last = Worker(client, SPACE, "described", seconds, budget=26, worker="d", machine="m")
    assert last.run() == "budget_spent" and last.measured == 2
    (kept,) = client.list_measurements("described").graphs
    assert kept.machines.count("m") == 2
    assert seconds(last.conclude()) == pytest.approx(min(kept.seconds), rel=1e-3)


def test_a_described_space_is_written_with_its_constraints(tmp_path):
    SPACE.write(tmp_path / "space.json")
    written = json.loads((tmp_path / "space.json").read_text())
    bound = {"factors": ["p0", "p1"], "divisors": [], "most": 256}
    assert written["constraints"] == [bound] and "configurations" not in written
    with pytest.raises(ArgumentError, match="functions cannot be written"):
        Space("options", VALUES, constraints=lambda one: True).write(tmp_path / "space.json")
