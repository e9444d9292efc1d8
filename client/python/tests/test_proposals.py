"""What adapters share that shorten a list: what was measured comes first."""

import numpy as np
import pytest
from servers import run_empty_server, run_server_that_keeps_nothing, said_once

from hlorank import Client, Fallback, Result, Space
from hlorank.tuners.proposals import (
    Proposals,
    column_of,
    graph_of_rows,
    number_of,
    result_of,
    row_of,
)

ROWS = [row_of({"tile": tile, "warps": warps}) for tile in (16, 32, 64, 128) for warps in (1, 2, 4)]
SECONDS = [1.0 + 0.1 * number for number in range(len(ROWS))]


def measured(seconds=SECONDS):
    return list(zip(ROWS, map(result_of, seconds), strict=True))


def test_nothing_is_known_before_a_report(client):
    assert Proposals(client, "nothing").best("gemm", "", ROWS) == []
    assert Proposals(client, "nothing").measured("gemm", "", ROWS[0]) == []


def test_a_row_that_is_fast_for_no_visible_reason_is_first(client):
    seconds = [*SECONDS[:7], 0.2, *SECONDS[8:]]
    proposals = Proposals(client, "outlier", top_k=3)
    proposals.report("gemm", "512", measured(seconds))
    assert proposals.best("gemm", "512", ROWS)[0] == 7
    assert proposals.measured("gemm", "512", ROWS[0])[0] == ROWS[7]
    assert proposals.best("gemm", "513", ROWS) == [], "another instance"


def test_failures_are_not_proposed_and_equal_rows_count_once(client):
    proposals = Proposals(client, "failures", top_k=len(ROWS))
    proposals.report("gemm", "", [(ROWS[0], Result(failure="crash")), *measured()[1:]])
    assert proposals.best("gemm", "", [*ROWS, *ROWS])[0] == 1
    assert sorted(proposals.best("gemm", "", [*ROWS, *ROWS])) == list(range(1, len(ROWS)))


def test_what_was_not_sent_is_sent_once_the_server_is_back(tmp_path):
    with run_empty_server(tmp_path) as server:
        pass
    with Client(server.address) as client:
        again = Fallback("tuning goes on without it", pause=0.0)
        adapter = Proposals(client, "this CPU", timeout=0.5, fallback=again)
        with said_once():
            assert adapter.best("gemm", "", ROWS) == []
            adapter.report("gemm", "", measured()[:6])
            adapter.report("gemm", "", measured()[6:])
        assert adapter.flush() == len(ROWS)
        with run_empty_server(tmp_path, server.address):
            while adapter.flush():  # until gRPC connects again
                pass
            assert adapter.best("gemm", "", ROWS)[0] == 0


def test_a_value_has_the_same_number_in_every_list():
    assert [number_of(value) for value in (3, 0.5, True, None)] == [3.0, 0.5, 1.0, -1.0]
    assert number_of(np.int64(3)) == number_of(np.float32(3)) == 3.0
    assert number_of("tf32") == number_of("tf32") != number_of("ieee")
    assert number_of("tf32") == int(number_of("tf32")) < 1 << 24, "exact as f32"


def test_names_of_any_length_are_possible():
    graph = graph_of_rows("größe" * 100, "512" * 100, ["tile"]).whole().feature_graph
    assert graph.feature_set == ("gr??e" * 100)[:128]
    assert len(graph.instance) <= 256
    assert graph_of_rows("gemm", "512", ["tile"]).whole().feature_graph.instance == "512"
    long = ["k" * 130 + end for end in "ab"]
    graphs = [graph_of_rows(name, "512", ["tile"]).whole().feature_graph for name in long]
    assert (
        graphs[0].feature_set == graphs[1].feature_set and graphs[0].instance != graphs[1].instance
    )


def test_what_cannot_be_a_run_time_is_a_failure():
    for wrong in (0.0, -1.0, float("inf"), float("nan"), 1e9, 1e10):
        assert result_of(wrong) == Result(failure="compile")
    assert result_of(0.5) == Result(0.5)


@pytest.mark.parametrize(
    ("values", "column"),
    [
        ([1, 2.5, np.int64(3)], [1, 2.5, 3]),
        ([False, True], [False, True]),
        (["-O2", "-O3"], ["-O2", "-O3"]),
        ([None, 1], ["None", "1"]),
        ([None], ["None"]),
        ([1, "1", np.float64(0.5)], ["1", "'1'", "0.5"]),
        ([float("inf"), 1], ["inf", "1"]),
        ([float("nan")], ["nan"]),
        ([10**400, 1], [str(10**400), "1"]),
        ([1 << 24, (1 << 24) + 1], ["16777216", "16777217"]),
        ([True, 1], ["True", "1"]),
        ([(1, 2), [3]], ["(1, 2)", "[3]"]),
    ],
)
def test_values_of_any_kind_are_a_column(values, column):
    assert column_of(values) == column
    assert len(Space("any", {"value": column})) == len(values)


def test_configurations_may_differ_in_their_parameters(client):
    rows = [*ROWS, row_of({"tile": 16, "split": 2}), row_of({"tile": 32, "split": 4})]
    proposals = Proposals(client, "differ", top_k=3)
    assert proposals.best("gemm", "", rows) == []
    # A tuner that measured a part of the list reports that part.
    proposals.report("gemm", "", measured())
    proposals.report("gemm", "", [(row, Result(0.5)) for row in rows[-2:]])
    assert {*proposals.best("gemm", "", rows)} > {len(rows) - 1, len(rows) - 2}
    assert len(client.list_measurements("differ").graphs) == 1


def test_a_server_that_keeps_nothing_is_said_once_whatever_is_asked_first(tmp_path):
    with run_server_that_keeps_nothing(tmp_path) as address, Client(address) as client:
        proposals = Proposals(client, "nothing is kept")
        assert proposals.measured("gemm", "", ROWS[0]) == []
        proposals.report("gemm", "", measured())
        proposals.report("another", "", measured())
        proposals.best("gemm", "", ROWS)
