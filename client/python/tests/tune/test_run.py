import json

import numpy as np
import pytest

from hlorank.tune import JournalError
from hlorank.tune.journal import RESULTS_FILE
from hlorank.tune.run import read_run

HEAD = {"run": {"program": "step", "task": "layout", "strategy": "genetic", "with_model": True}}


def measured(candidate, nanoseconds=None, status="measured", **more):
    """A row about a candidate beside a default of 1,000 ns."""
    reference = None if nanoseconds is None else 1000
    row = {"candidate": candidate, "status": status, "nanoseconds": nanoseconds}
    row |= {"reference": reference, "noise": 0.01, "message": "", "seconds": 1.0}
    return row | more


ROWS = [
    HEAD,
    measured({}, 1010),
    {"predictions": 128, "took": 0.1, "seconds": 1.2},
    measured({"3": [[0, 1], [], []]}, 800, score=-1.5),
    measured({"4": [[], [0, 1], []]}, status="compile failed", message="no"),
    {"predictions": 64, "error": "no server", "took": 0.1, "seconds": 1.2},
    measured({"5": [[0, 1], [], []]}, 700),
    measured({"6": [[0, 1], [], []]}, 5000, status="slow"),
]
END = {
    "best": {"3": [[0, 1], [], []]},
    "noise": 0.02,
    "seconds": 9.0,
    "confirmed": [
        measured({}, 1000),
        measured({"5": [[0, 1], [], []]}, 990),
        measured({"3": [[0, 1], [], []]}, 750),
    ],
}


def run(tmp_path, *rows):
    (tmp_path / RESULTS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(tmp_path)[1]


def test_a_search_that_goes_on_tells_what_it_found_so_far(tmp_path):
    found = run(tmp_path, *ROWS)
    assert [m.number for m in found.measurements] == [0, 1, 2, 3, 4]
    assert [m.number for m in found.fastest()] == [3, 1, 0, 4]
    assert found.curve().tolist() == [1.0, 0.8, 0.8, 0.7, 0.7]
    assert (found.predictions, found.errors) == (192, ["no server"])
    assert found.measurements[1].score == -1.5 and found.measurements[3].score is None
    assert np.isinf(found.measurements[2].outcome.ratio)
    assert found.winner is None and found.best is None


def test_the_winner_is_that_of_the_longer_measurement(tmp_path):
    found = run(tmp_path, *ROWS, END)
    assert (found.best, found.noise, found.winner.number) == (1, 0.02, 1)
    assert found.final_ratio == 0.75
    assert sorted(found.confirmed) == [0, 1, 3]


def test_a_search_that_found_nothing_ends_with_the_default(tmp_path):
    found = run(tmp_path, *ROWS, END | {"best": {}})
    assert (found.best, found.winner.number, found.final_ratio) == (0, 0, 1.0)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"loss": 1}],
        [{"run": {"program": "step"}}],
        [HEAD, {"candidate": {}}],
        [HEAD, {"best": {"9": []}, "noise": 0, "confirmed": []}],
    ],
    ids=["empty", "other", "head", "row", "winner"],
)
def test_results_that_are_none_are_refused(tmp_path, rows):
    with pytest.raises(JournalError, match="contains no results"):
        run(tmp_path, *rows)
