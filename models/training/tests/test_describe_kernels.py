import pytest

pytest.importorskip("scipy", reason="scipy is not installed")

from hlorank_tune.measure.atomic_files import write_json

from hlorank_training.measuring.describe_kernels import describe_kernels
from hlorank_training.measuring.kernel_times import label

KERNELS = [
    {"digest": "a", "hot": [1000.0, 1100.0], "warm": None, "cold": None},
    {"digest": "b", "hot": [6000.0, 6000.0], "warm": [8000.0, 8400.0], "cold": [20000.0, 20000.0]},
    {"digest": "c", "hot": [1.0, 1.0], "warm": None, "cold": None},
    {"digest": "d", "error": "the compiler crashed with SIGABRT"},
    {"digest": "e", "hot": [30000.0, 30300.0], "warm": None, "cold": None},
]
PROGRAM = {
    "family": "stencil",
    "tau_between_passes": 0.9,
    "call_nanoseconds": 500,
    "first_pass": [10500.0, 9501.0, 70000.0, 39500.0],
    "second_pass": [9500.0, 9600.0, 70000.0, 39600.0],
}


@pytest.fixture
def folder(tmp_path):
    """Warm sums are 9,000, 9,001, unknown and 39,000 ns: exactly those of the program."""
    write_json(tmp_path / "programs" / "wave.json", PROGRAM)
    runs = [[0, 1], [0, 1, 2], [0, 3], [0, 1, 4]]
    kernels = {"kernels": KERNELS, "configurations": runs, "family": "stencil", "name": "wave"}
    write_json(tmp_path / "kernels" / "wave.json", kernels)
    return tmp_path


def rows(text):
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    table = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return {cells[0]: cells[1:] for cells in table}


def test_kernels_are_counted_with_those_that_are_short_and_those_without_a_time(folder):
    text = describe_kernels(folder)
    assert "5 distinct kernels, of which 3 have a run time of at least 50 ns" in text
    assert "1 have none (1 because the compiler crashed or timed out)" in text


def test_passes_are_compared_by_run_time(folder):
    shown = rows(describe_kernels(folder))
    assert shown["0 to 5 µs"][0] == "1"
    assert shown["all"] == ["3", "1.000", "5.0%", "9.0%"]


def test_sums_are_compared_with_the_program_where_every_kernel_has_a_time(folder):
    wave = rows(describe_kernels(folder))["wave"]
    assert wave[:2] == ["stencil", "3"]
    hot, warm, cold = (wave[2 + 4 * n : 6 + 4 * n] for n in range(3))
    assert warm == ["1.00", "0.0%", "0.0%", "1.00"]
    assert hot == ["0.78", "16.5%", "7.3%", "1.00"]
    assert cold[0] == "2.33" and float(cold[1].rstrip("%")) > 90
    assert wave[-1] == "0.90"


def test_the_label_is_the_warm_time_of_large_kernels():
    labels = [label(kernel) for kernel in KERNELS]
    assert labels == [1000.0, 8000.0, None, None, 30000.0]
