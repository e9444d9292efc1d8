import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from hlorank_tune.measure.atomic_files import write_atomically, write_json
from hlorank_tune.measure.schema import HloModuleProto, TuningData
from hlorank_tune.measure.tuning_data import Tile, layout_tuning_data, tile_tuning_data

from hlorank_training.measuring.describe import describe
from hlorank_training.reports.plots import plot_curves

MILLISECOND = 1_000_000
PROVENANCE = {
    "processor": "A Processor",
    "threads": 1,
    "label": "the minimum, nanoseconds",
    "protocol": {"warmups": 2, "rounds": 8, "most_rounds": 64, "seconds": 0.5},
}
RECORD = {
    "default_over_best": 1.5,
    "tau_between_passes": 0.5,
    "noise_between_passes": 0.02,
    "load_average_before": 0.25,
    "load_average_after": 1.5,
    "rounds_repeated_under_load": 600,
}


@pytest.fixture
def tiles(tmp_path) -> Path:
    folder = tmp_path / "tile"
    write_json(folder / "provenance.json", PROVENANCE | {"task": "tile"})
    # Of eleven values the 10th percentile is the second and the 90th the tenth.
    write_kernel(folder, "b_1", range(1, 12), default_over_best=1.25)  # spread 10 / 2
    write_kernel(folder, "b_2", range(10, 21), tau_between_passes=1.0)  # spread 19 / 11
    write_kernel(folder, "a_1", [4, 4, 4], noise_between_passes=0.001, load_average_after=3.0)
    return folder


def write_kernel(folder: Path, name: str, milliseconds, **values: Any) -> None:
    times = [time * MILLISECOND for time in milliseconds]
    module = tile_tuning_data(HloModuleProto(), [Tile((1,))] * len(times), times)
    write_json(folder / f"{name}.json", RECORD | {"name": name, "family": name[0]} | values)
    write_atomically(folder / f"{name}.pb", TuningData(modules=[module]).SerializeToString())


def write_graph(folder: Path, name: str, milliseconds) -> None:
    times = [time * MILLISECOND for time in milliseconds]
    data = layout_tuning_data(HloModuleProto(), [], [()] * len(times), times)
    write_json(folder / f"{name}.json", RECORD | {"name": name, "family": name})
    write_atomically(folder / f"{name}.pb", data.SerializeToString())


def table(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_a_table_has_a_row_per_family_and_a_total(tiles, tmp_path):
    heading, *rows = table(describe(tiles, tmp_path))
    assert heading[:3] == ["family", "graphs", "configurations"]
    assert rows == [
        ["a", "1", "3", "4", "1.00", "1.50", "0.50", "0.1 %"],
        ["b", "2", "22", "1 to 10", "3.36", "1.38", "0.75", "2.0 %"],
        ["total", "3", "25", "1 to 10", "1.73", "1.50", "0.67", "2.0 %"],
    ]


def test_columns_are_aligned(tiles, tmp_path):
    lines = [line for line in describe(tiles, tmp_path).splitlines() if line.startswith("|")]
    bars = {tuple(match.start() for match in re.finditer(r"\|", line)) for line in lines}
    assert len(lines) == 5
    assert len(bars) == 1


def test_how_it_was_measured_stands_below_the_table(tiles, tmp_path):
    text = describe(tiles, tmp_path)
    assert "A Processor, threads a program: 1. 2 warm-ups, then two passes of 8 to 64 " in text
    # The loads are 0.25 three times, 1.5 twice and 3.0.
    assert "Load average 0.88 (median), 3.00 (highest)" in text
    assert "1,800 measured again, an unknown number kept" in text


def test_a_sum_over_part_of_the_records_is_a_lower_bound(tiles, tmp_path):
    write_kernel(tiles, "a_1", [4, 4, 4], rounds_kept_under_load=7)
    assert "at least 7 kept" in describe(tiles, tmp_path)


def test_every_collection_below_a_folder_gets_a_table_and_a_plot(tmp_path):
    layouts = tmp_path / "layout"
    for name, times in (("random", [2, 3]), ("default", [1, 2, 3])):
        write_json(layouts / name / "provenance.json", PROVENANCE | {"task": "layout"})
        write_graph(layouts / name, "mixer", times)
    text = describe(layouts, tmp_path / "plots")
    assert re.findall("^### (.*)$", text, re.M) == ["layout/default", "layout/random"]
    assert [row[:4] for row in table(text) if row[0] == "mixer"] == [
        ["mixer", "1", "3", "1"],
        ["mixer", "1", "2", "2"],
    ]
    written = sorted(path.name for path in (tmp_path / "plots").iterdir())
    assert written == ["layout-default.svg", "layout-random.svg"]


def test_a_kernel_whose_tuning_file_is_not_there_yet_does_not_count(tiles, tmp_path):
    (tiles / "a_1.pb").unlink()
    assert [row[0] for row in table(describe(tiles, tmp_path))[1:]] == ["b", "total"]


def test_a_folder_without_measurements_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no measurements in"):
        describe(tmp_path, tmp_path)


def test_the_same_measurements_give_the_same_bytes(tiles, tmp_path):
    texts = [describe(tiles, tmp_path / name) for name in ("first", "second")]
    first, second = (tmp_path / name / "tile.svg" for name in ("first", "second"))
    assert texts[0] == texts[1]
    assert first.read_bytes() == second.read_bytes()
    assert "3 graphs of 2 families" in first.read_text()
    assert str(tmp_path) not in first.read_text()


def test_a_plot_of_many_kernels_stays_small(tmp_path):
    folder = tmp_path / "tile"
    write_json(folder / "provenance.json", PROVENANCE | {"task": "tile"})
    for index in range(200):
        write_kernel(folder, f"{chr(97 + index % 20)}_{index}", [1 + index, 2 + 3 * index])
    describe(folder, tmp_path)
    assert (tmp_path / "tile.svg").stat().st_size < 50_000


def test_curves_name_the_first_of_the_best_epochs(tmp_path):
    taus = [0.1, 0.6, 0.6, 0.2]
    history = [{"epoch": e, "loss": 1 / (e + 1), "validation_tau": t} for e, t in enumerate(taus)]
    assert_same_twice(lambda path: plot_curves(history, path), tmp_path)
    text = (tmp_path / "first.svg").read_text()
    assert "tau: 0.600 at the best epoch, 1" in text
    assert "loss: 0.500 at the best epoch, 1" in text


def assert_same_twice(plot, folder: Path) -> None:
    paths = [folder / "first.svg", folder / "second.svg"]
    for path in paths:
        plot(path)
    assert paths[0].read_bytes() == paths[1].read_bytes()
