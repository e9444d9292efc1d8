import errno
import json

import pytest

from hlorank import ArgumentError
from hlorank_tune import Settings
from hlorank_tune.journal import RESULTS_FILE, Journal, JournalError, read_rows

RUN = {"program": "step", "seed": 0, "model": None}
ROWS = [
    {"candidate": {"3": [[1, 0], [], []]}, "ratio": 0.5},
    {"predictions": 64, "error": "é\u2028"},
]


@pytest.fixture
def written(tmp_path):
    journal = Journal(tmp_path, RUN)
    for row in ROWS:
        journal.write(row)
    journal.close()
    return tmp_path / RESULTS_FILE


def reopened(folder, run=RUN):
    journal = Journal(folder, run)
    journal.close()
    return journal.rows


def test_a_row_is_on_the_disk_before_anything_else_happens(tmp_path):
    journal = Journal(tmp_path / "deep" / "er", RUN)
    for number, row in enumerate(ROWS, 2):
        journal.write(row)
        assert len((tmp_path / "deep" / "er" / RESULTS_FILE).read_text().splitlines()) == number
    journal.close()


def test_a_run_that_a_kill_cut_anywhere_goes_on_with_its_whole_rows(written):
    whole = written.read_bytes()
    for length in range(len(whole) + 1):
        written.write_bytes(whole[:length])
        count = max(0, whole[:length].count(b"\n") - 1)
        journal = Journal(written.parent, RUN)
        assert journal.rows == ROWS[:count], f"cut after {length} bytes"
        for row in ROWS[count:]:
            journal.write(row)
        journal.close()
        assert written.read_bytes() == whole
    assert list(read_rows(written)) == [{"run": RUN}, *ROWS]


def test_another_run_is_refused_with_what_differs_and_touches_nothing(written):
    before = written.read_bytes()
    other = RUN | {"seed": 1, "model": "layout-xla-cpu@3", "threads": 1}
    with pytest.raises(JournalError) as refused:
        Journal(written.parent, other)
    first, second = str(refused.value).splitlines()
    assert first == (
        f"{written.parent} has the results of another run: name another folder with --out"
    )
    assert "model none, not layout-xla-cpu@3, seed 0, not 1, threads none, not 1" in second
    assert f"to begin anew in this folder, delete {written}" in second
    assert written.read_bytes() == before


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"identity": "b" * 64, "processor": "p"}, "it was of another program or for another"),
        ({"processor": "x" * 300}, "different: processor;"),
        ({f"setting {i}": i for i in range(9)}, "setting 2 none, not 2, 6 more;"),
    ],
)
def test_the_refusal_of_another_run_is_two_short_lines(written, changed, words):
    with pytest.raises(JournalError) as refused:
        Journal(written.parent, RUN | changed)
    lines = str(refused.value).replace(str(written), "").replace(str(written.parent), "")
    assert words in lines and len(lines) < 250 and lines.count("\n") == 1


@pytest.mark.parametrize(
    ("before", "after", "goes_on"),
    [
        ((4, 60.0), (5, 60.0), True),
        ((4, 60.0), (5, 70.0), True),
        ((4, 60.0), (4, None), True),
        ((4, 60.0), (5, 50.0), False),
        ((4, None), (5, 60.0), False),
        ((4, 60.0), (3, 60.0), False),
    ],
)
def test_a_run_goes_on_with_more_of_its_budget_and_not_with_less(tmp_path, before, after, goes_on):
    old, new = (
        RUN | {"measurements": count, "seconds": seconds} for count, seconds in (before, after)
    )
    journal = Journal(tmp_path, old)
    journal.write({"predictions": 1, "seconds": 2.5})
    journal.close()
    if goes_on:
        for _ in range(2):
            assert reopened(tmp_path, new)[1:] == [{"run": new, "seconds": 2.5}], "once"
    else:
        with pytest.raises(JournalError, match="different: "):
            Journal(tmp_path, new)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"top_k": 0}, "top_k is 0"),
        ({"measurements": -1}, "measurements is -1"),
        ({"predictions": 0}, "predictions is 0"),
        ({"seconds": -1}, "seconds is -1"),
        ({"seconds": "60s"}, "seconds is '60s'"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_that_no_search_could_end_with_are_refused_by_name(wrong, words):
    with pytest.raises(ArgumentError, match=words):
        Settings(**wrong)


def test_a_run_without_results_gives_way_to_another(tmp_path):
    Journal(tmp_path, RUN).close()
    other = RUN | {"with_model": False}
    assert reopened(tmp_path, other) == []
    assert list(read_rows(tmp_path / RESULTS_FILE)) == [{"run": other}]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"loss": 0.5}\n', "does not describe a run"),
        (b"{}\n\xff\xfe\n", "is not text in UTF-8, line 2"),
        (b"{}\n{broken}\n{}\n", "line 2 is no JSON document"),
        (b"{}\n{\n{}\n", "line 2 ends within"),
        (b"{}\n[1, 2]\n{}\n", "line 2 is no JSON object"),
    ],
)
def test_a_file_of_something_else_is_refused_with_the_line(tmp_path, content, words):
    (tmp_path / RESULTS_FILE).write_bytes(content)
    with pytest.raises(JournalError, match=words):
        Journal(tmp_path, RUN)


def test_no_file_is_told_with_its_path(tmp_path):
    with pytest.raises(JournalError, match=f"{tmp_path / RESULTS_FILE} cannot be read"):
        list(read_rows(tmp_path / RESULTS_FILE))


def test_two_searches_do_not_write_one_file(tmp_path):
    first = Journal(tmp_path, RUN)
    before = (tmp_path / RESULTS_FILE).read_bytes()
    with pytest.raises(JournalError, match="in use by another search"):
        Journal(tmp_path, RUN)
    first.close()
    assert reopened(tmp_path) == []
    assert json.loads(before) == {"run": RUN}


def test_a_file_system_without_locks_is_told_from_another_search(tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(JournalError, match="cannot be locked on this file system: No locks"):
        Journal(tmp_path, RUN)
