"""``hlorank space``, beside the client of Python: both speak of the same space."""

import csv
import json
import subprocess

import pytest
from servers import command_line, run_server

from hlorank import Adapt, Client, Space

TARGET = "a board, gcc 12"
ROWS = [
    {"tile": tile, "vectorize": vectorize, "optimize": optimize}
    for tile in (8, 16, 32, 64)
    for vectorize in (False, True)
    for optimize in ("-O3", "-O2")
]
SPACE = Space.from_configs("stencil", ROWS, instance="1024")


def seconds_of(row):
    return 0.001 * row["tile"] * (1 if row["vectorize"] else 4)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server without models that keeps measurements."""
    folder = tmp_path_factory.mktemp("store")
    with run_server(f"--models={folder}", f"--measurements={folder / 'measurements'}") as address:
        yield address


@pytest.fixture
def space(server, tmp_path):
    """Writes a table, and runs a command about it; returns its JSON."""
    path = tmp_path / "stencil.csv"

    def run(command, rows, *flags, target=TARGET):
        with path.open("w", newline="") as file:
            names = [*ROWS[0], "seconds", "failure"]
            table = csv.DictWriter(file, names, restval="")
            table.writeheader()
            table.writerows(rows)
        program = [command_line(), "space", command, path, f"--target={target}"]
        program += ["--instance=1024", f"--endpoint=http://{server}", *flags]
        done = subprocess.run([*program, "--json"], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def measured(rows):
    return [row | {"seconds": seconds_of(row)} for row in rows]


def test_rows_without_a_time_are_suggested_and_ranked_by_those_with_one(space):
    failed = ROWS[8] | {"failure": "crash"}
    table = [*measured(ROWS[4:8]), failed, *ROWS[:4]]
    suggested = space("suggest", table, "--count=2", target="suggested")
    assert suggested["candidates"] == 4 and suggested["model"] == "no model"
    numbers = [row["number"] for row in suggested["rows"]]
    assert len(set(numbers)) == 2 and set(numbers) <= {5, 6, 7, 8}
    for row in suggested["rows"]:
        assert row["configuration"] == table[row["number"]]
        assert row["reason"] == "expected improvement" and row["predicted"]["seconds"] > 0
    assert suggested["learned"]["rests_on"] == ["measurements"]
    ranked = space("rank", table, "--top=0", target="suggested")
    assert {row["number"] for row in ranked["rows"]} == {5, 6, 7, 8}
    scores = [row["score"] for row in ranked["rows"]]
    assert scores == sorted(scores) and ranked["graph_hash"] == suggested["graph_hash"]


def test_what_a_table_reports_is_known_to_a_search_in_python_and_the_other_way_round(space, server):
    assert space("report", [*measured(ROWS[:6]), *ROWS[6:]]) == {"accepted": 6, "known": 0}
    assert space("report", measured(ROWS[:6])) == {"accepted": 0, "known": 6}
    with Client(server) as client:
        search = client.search(SPACE, TARGET)
        ranking = search.rank(top_k=1)
        assert search.adaptation.stored_measurements == 6
        (kept,) = client.list_measurements(TARGET).graphs
        known = {row.tobytes() for row in kept.configurations.values()}
        expected = SPACE.configurations(ROWS[:6]).values()
        assert known == {row.tobytes() for row in expected}, "the numbers of texts are the same"
        search.report(ROWS[7], seconds_of(ROWS[7]))
    ranked = space("rank", ROWS)
    assert ranked["graph_hash"] == ranking.graph_hash.hex()
    assert ranked["learned"]["stored_measurements"] == 7


def test_another_target_says_what_to_expect(space, server):
    with Client(server) as client:
        times = [seconds_of(row) for row in ROWS]
        client.report_measurements(SPACE.graph, Adapt("old", SPACE.configurations(ROWS), times))
    for flag in ("--other-target=old", "--all-other-targets"):
        ranked = space("rank", ROWS, flag, "--top=1", target="new")
        sources = {source["target"]: source for source in ranked["learned"]["sources"]}
        assert sources["old"]["used"] and ranked["learned"]["rests_on"] == ["other targets"]
        assert seconds_of(ranked["rows"][0]["configuration"]) == min(times)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tile,seconds\n8,0.5\n", "every row has a time or a failure"),
        ("tile,seconds\n8,fast\n", "line 2: `seconds` is `fast`"),
        (
            '[{"configuration": {"tile": 8}}, {"configuration": {"tile": "x"}}]',
            "text beside numbers",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_refused_by_name_without_a_server(tmp_path, text, words):
    table = tmp_path / "table"
    table.write_text(text)
    program = [command_line(), "space", "suggest", table, "--target=a"]
    done = subprocess.run(program, capture_output=True, text=True)
    assert done.returncode == 2 and f"{table}: " in done.stderr and words in done.stderr
