import json

import numpy as np
import pytest

from hlorank_tune import JournalError
from hlorank_tune.journal import RESULTS_FILE
from hlorank_tune.run import read_run

HEAD = {
    "run": {
        "program": "step",
        "task": "layout",
        "with_model": True,
        "reference": "your program",
        "default": {},
        "default_name": "the default takes",
    }
}


def measured(candidate, nanoseconds=None, status="measured", **more):
    """A row about a candidate beside a program of 1,000 ns."""
    reference = None if nanoseconds is None else 1000
    row = {"candidate": candidate, "status": status, "nanoseconds": nanoseconds}
    row |= {"reference": reference, "noise": 0.01, "message": "", "failure": None, "seconds": 1.0}
    return row | more


ROWS = [
    HEAD,
    measured({}, 1010),
    {"predictions": 128, "took": 0.1, "seconds": 1.2},
    measured({"3": [[0, 1], [], []]}, 800, score=-1.5),
    measured({"4": [[], [0, 1], []]}, status="compile failed", message="no"),
    {"predictions": 64, "error": "no server", "took": 0.1, "seconds": 1.2},
    measured({"5": [[0, 1], [], []]}, 700),
    measured({"6": [[0, 1], [], []]}, 5000, status="measured"),
]
PARTS = [
    {
        "seconds": 8.0,
        "confirmed": [
            measured({}, 1000 + slower),
            measured({"5": [[0, 1], [], []]}, 990 + slower),
            measured({"3": [[0, 1], [], []]}, 750 + slower),
        ],
    }
    for slower in (20, 0, 10)
]
BEST = {"best": {"3": [[0, 1], [], []]}, "noise": 0.02, "seconds": 9.0}
END = [*PARTS, BEST]


def run(tmp_path, *rows):
    (tmp_path / RESULTS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_run(tmp_path)[1]


def test_a_search_that_goes_on_tells_what_it_found_so_far(tmp_path):
    found = run(tmp_path, *ROWS)
    assert [m.number for m in found.measurements] == [0, 1, 2, 3, 4]
    assert [m.number for m in found.fastest()] == [3, 1, 0, 4]
    assert (found.predictions, found.errors) == (192, ["no server"])
    assert found.measurements[1].score == -1.5 and found.measurements[3].score is None
    assert np.isinf(found.measurements[2].outcome.ratio)
    assert found.winner is None and found.best is None


def test_the_winner_is_that_of_the_longer_measurement(tmp_path):
    found = run(tmp_path, *ROWS, *END)
    assert (found.best, found.noise, found.winner.number) == (1, 0.02, 1)
    assert (found.final_ratio, found.seconds) == (0.75, 9.0)
    assert sorted(found.confirmed) == [0, 1, 3]


def test_a_summary_says_what_it_is_based_on(tmp_path):
    found = run(tmp_path, *ROWS, PARTS[1], BEST)
    assert "1.33 times as fast as your program after 5 measurements" in str(found)
    assert "measured again 1 of 3 times for lack of time" in str(found)
    alone = run(tmp_path, *ROWS[:2], BEST | {"best": {}})
    assert "no candidate that works was measured, so the winner is your program" in str(alone)


def test_a_summary_says_that_the_server_went_away(tmp_path):
    failed = {"predictions": 0, "error": "no server", "took": 0.1, "seconds": 1.2}
    lost = run(tmp_path, *ROWS, failed, *END)
    assert str(lost).endswith(
        "the server stopped answering after 192 predictions; the rest was searched without the "
        "model"
    )
    assert lost.server_problem in str(lost)
    answered = run(tmp_path, *ROWS, {"predictions": 64, "took": 0.1, "seconds": 1.2}, *END)
    end = "1 rounds of predictions failed, and were searched without the model"
    assert str(answered).endswith(end)


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [{"loss": 1}],
        [{"run": {"program": "step"}}],
        [HEAD, {"candidate": {}}],
        [HEAD, {"best": {"9": []}, "noise": 0}],
    ],
    ids=["empty", "other", "head", "row", "winner"],
)
def test_results_that_are_none_are_refused(tmp_path, rows):
    with pytest.raises(JournalError, match="contains no results"):
        run(tmp_path, *rows)
