import json

import pytest
from test_run import END, HEAD, ROWS, measured

from hlorank_tune.journal import RESULTS_FILE
from hlorank_tune.report import ProgressLines, table, write_report
from hlorank_tune.run import Run, duration


def folder(path, *rows, **head):
    path.mkdir()
    rows = [{"run": HEAD["run"] | head}, *rows]
    (path / RESULTS_FILE).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def tables(page):
    """The tables of a page, each as its lines."""
    blocks = [block.splitlines() for block in page.split("\n\n")]
    return [block for block in blocks if block[0].startswith("| ")]


def test_a_report_tells_what_was_tried_and_what_failed(tmp_path):
    a = folder(tmp_path / "a", *ROWS[1:], *END)
    page = write_report(a).read_text()
    assert page.startswith("# step, with the model\n")
    summary, fastest, failed, errors = tables(page)
    assert "0.750" in summary[2]
    assert [line.split("|")[1].strip() for line in fastest[2:]] == ["3", "1", "0", "4"]
    assert "compile failed" in failed[2] and "no" in failed[2]
    assert "no server" in errors[2]
    assert "1.33 times as fast as your program" in page
    assert all(len({len(line) for line in lines}) == 1 for lines in tables(page))


def test_a_report_of_fusions_tells_where_the_time_goes(tmp_path):
    default, best = {"fused_nodes": [1, 2]}, {"fused_nodes": [1]}
    kernels = [
        {"name": f"add.{number} (add)", "computed_nodes": number, "seconds": 1e-6 * (12 - number)}
        for number in range(12)
    ]
    rows = [
        {"candidate": default, "kernels": kernels},
        {"candidate": best, "kernels": kernels[:1]},
        {"candidate": {}, "kernels": []},
    ]
    a = folder(tmp_path / "a", *ROWS[1:], *END, {"kernels": rows}, task="fusion", default=default)
    page = write_report(a).read_text()
    of_default, of_best = tables(page)[2:4]
    cells = [cell.strip() for cell in of_default[2].strip("|").split("|")]
    assert cells == ["add.0 (add)", "███", "0", "12 µs", "15.4%"]
    assert len(of_default) == 2 + 10 and len(of_best) == 2 + 1 and "█" * 20 in of_best[2]
    title = "The compiler's own fusions: 12 kernels, 78 µs predicted, and 2 others with 3 µs:"
    assert title in page and "The winner: 1 kernel, 12 µs predicted:" in page
    assert "The winner: a kernel is larger than the model's limit." in page


def test_a_search_that_goes_on_has_not_ended(tmp_path):
    page = write_report(folder(tmp_path / "a", with_model=False)).read_text()
    assert page.startswith("# step, without the model\n") and "not ended" in page
    assert "The fastest of 0" in page


def test_a_cell_stays_in_its_column_whatever_stands_in_it():
    assert table(["", "n"], [["two\nlines | a bar", "1"], ["", "22"]], words=1) == [
        "|                    |   n |",
        "|:-------------------|----:|",
        "| two lines \\| a bar |   1 |",
        "|                    |  22 |",
    ]


LONG = measured({"7": []}, status="compile failed", message="[red]word[/red] " * 40)


def test_there_is_a_line_a_measurement(capsys):
    lines, run = ProgressLines("jax 1"), Run("step", "layout", True)
    for row in (*ROWS[1:], LONG):
        run.add(row)
        lines(run)
    first, *printed = capsys.readouterr().out.splitlines()
    assert first == "what is found is for jax 1"
    assert [line.split()[0] for line in printed] == ["0", "1", "2", "3", "4", "5"]
    assert printed[5].count("[red]word[/red]") == 40
    assert "-1.5000" in printed[1] and "0.800" in printed[1]


@pytest.mark.parametrize(
    ("nanoseconds", "words"),
    [
        *((None, ""), (0, "0 ns"), (999, "999 ns"), (1000, "1 µs"), (12_345_678, "12.35 ms")),
        (7_200_000_000_000, "7200 s"),
    ],
)
def test_run_times_are_in_the_unit_that_suits_them(nanoseconds, words):
    assert duration(nanoseconds) == words


def test_the_phase_is_shown_while_nothing_is_measured(capsys):
    phase = "waiting for a quiet machine: other processes use 1.3 processors"
    ProgressLines(quiet_seconds=0.0)(Run("step", "layout", True, phase=phase))
    assert phase in capsys.readouterr().out
