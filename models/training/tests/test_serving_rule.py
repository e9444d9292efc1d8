import numpy as np
import pytest

from hlorank_training.whole_graphs.graph import pruned
from hlorank_training.whole_graphs.serving_rule import Permutations, ServingRule


def sizes(rule: ServingRule, configs: int) -> list[int]:
    return [len(chunk) for chunk in rule.chunks(configs)]


def test_full_chunks_leave_a_shorter_one():
    assert sizes(ServingRule(128), 300) == [128, 128, 44]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [(300, [100] * 3), (257, [86, 86, 85]), (129, [65, 64]), (128, [128]), (1, [1])],
)
def test_even_chunks_differ_by_one_at_most(configs, expected):
    rule = ServingRule(128, chunking="even")
    assert sizes(rule, configs) == expected
    assert np.concatenate(rule.chunks(configs)).tolist() == list(range(configs))


def test_orders_are_those_of_the_document():
    orders = [Permutations(2, seed=101).order(number, 8).tolist() for number in range(2)]
    assert orders == [[5, 6, 0, 4, 3, 2, 1, 7], [7, 2, 1, 4, 3, 5, 0, 6]]


def test_every_order_is_cut_on_its_own():
    rule = ServingRule(5, chunking="even", permutations=Permutations(3, seed=2**64 - 1))
    chunks = rule.chunks(12)
    assert [len(chunk) for chunk in chunks] == [4] * 9
    orders = np.concatenate(chunks).reshape(3, 12)
    assert (np.sort(orders) == np.arange(12)).all()
    assert (orders[0] != orders[1]).any()


def test_one_chunk_is_scored_once_in_the_order_given():
    rule = ServingRule(5, permutations=Permutations(3, seed=101))
    assert [chunk.tolist() for chunk in rule.chunks(5)] == [[0, 1, 2, 3, 4]]


def test_a_golden_case_shows_how_a_whole_batch_is_cut():
    even = ServingRule(128, chunking="even")
    assert len(even.chunks(even.whole_batch())) == 2
    assert ServingRule(128).whole_batch() == 0


def test_a_manifest_has_only_what_differs_from_the_defaults():
    assert ServingRule(5).manifest_fields() == {"chunk_configs": 5}
    rule = ServingRule(5, "pruned", "even", Permutations(10, 101))
    assert rule.manifest_fields() == {
        "chunk_configs": 5,
        "nodes": "pruned",
        "chunking": "even",
        "permutations": {"count": 10, "seed": 101},
    }


def test_pruning_keeps_configurable_nodes_and_their_neighbours():
    graph = {
        "opcode": np.arange(10, 17),
        "features": np.arange(7.0)[:, None],
        "edges": np.array([[1, 2, 2, 4, 5], [0, 0, 1, 3, 2]]),
        "configurable": np.array([6, 1]),
    }
    kept = pruned(graph)
    assert kept["opcode"].tolist() == [10, 11, 12, 16]
    assert kept["features"][:, 0].tolist() == [0, 1, 2, 6]
    assert kept["edges"].tolist() == [[1, 2], [0, 1]]
    assert kept["configurable"].tolist() == [3, 1]
