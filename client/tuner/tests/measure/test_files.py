"""Files that are complete or absent, and those of measured configurations."""

import os

import numpy as np
import pytest

from hlorank_tune.measure.atomic_files import read_json, write_atomically, write_json
from hlorank_tune.measure.results import difference
from hlorank_tune.measure.schema import HloModuleProto, ModuleTuningData, Tile, tile_tuning_data


def test_no_partial_file_is_left_behind(tmp_path):
    write_atomically(tmp_path / "deep" / "file.pb", b"content")
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["file.pb"]
    assert (tmp_path / "deep" / "file.pb").read_bytes() == b"content"


def test_a_stop_before_the_end_leaves_the_old_file(tmp_path, monkeypatch):
    write_json(tmp_path / "file.json", {"a": 1})

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        write_json(tmp_path / "file.json", {"a": 2})
    assert read_json(tmp_path / "file.json") == {"a": 1}
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    file, link = tmp_path / "files" / "file", tmp_path / "link"
    write_atomically(file, b"old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, b"new")
    assert link.is_symlink() and file.read_bytes() == b"new"
    assert file.stat().st_mode & 0o777 == 0o640
    file.unlink()
    with pytest.raises(FileNotFoundError):
        write_atomically(link, b"new")


def test_a_name_that_was_known_before_is_not_used(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    (tmp_path / "file.partial").symlink_to(victim)
    write_atomically(tmp_path / "file", b"content")
    assert victim.read_bytes() == b"precious"


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"content")
    assert os.read(reading, 100) == b"content"
    os.close(reading)
    assert pipe.is_fifo()


def test_a_tile_run_holds_its_bounds_and_its_time():
    tiles = [Tile((4, 8), (16,)), Tile((2, 8))]
    data = tile_tuning_data(HloModuleProto(name="kernel"), tiles, [500, 700])
    again = ModuleTuningData.FromString(data.SerializeToString())
    bounds = [run.op_config.tile_size_config for run in again.runs]
    assert [list(b.output_bounds) for b in bounds] == [[4, 8], [2, 8]]
    assert [list(b.kernel_bounds) for b in bounds] == [[16], []]
    assert [run.profile.compute_time_ns for run in again.runs] == [500, 700]
    assert [run.is_default for run in again.runs] == [True, False]
    assert again.module.name == "kernel"


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    "results",
    [
        [NAN, 1.0],
        [NAN, NAN],
        [INF, -INF, 1e9],
        [],
        1.5,
        [True, False],
        [1 << 62, -1],
        [complex(NAN, 1), 1j],
        np.array([255], "u1"),
        np.array([1, INF], "f2"),
    ],
)
def test_results_agree_with_themselves(results):
    assert difference([np.array(results)], [np.array(results)], 1e-3) == ""


def test_results_agree_within_the_tolerance_of_the_largest_value():
    assert difference([np.array([1000.0, 0.0])], [np.array([1000.9, 0.5])], 1e-3) == ""
    assert difference([np.array([-0.0, 0.0])], [np.array([0.0, -0.0])], 1e-3) == ""


@pytest.mark.parametrize(
    ("expected", "results", "reason"),
    [
        ([0.0, 1.0], [NAN, 1.0], "differ by nan: NaN or infinities are not where"),
        ([NAN, 1.0], [0.0, 1.0], "differ by nan"),
        ([INF, 1.0], [-INF, 1.0], "differ by inf"),
        ([INF, 1.0], [1e38, 1.0], "differ by inf"),
        ([1000.0, 0.0], [1000.0, 2.0], "differ by 2.0e-03 of the largest value"),
        ([True, False], [True, True], "differ by 1.0e+00 of the largest value"),
        (np.array([0], "u1"), np.array([255], "u1"), "differ by"),
        ([1.0], [1.0, 2.0], "results have shapes (2,), expected (1,)"),
        ([1.0], 1.0, "results have shapes (), expected (1,)"),
    ],
)
def test_results_differ(expected, results, reason):
    assert reason in difference([np.array(expected)], [np.array(results)], 1e-3)


def test_another_number_of_results_differs():
    one = np.zeros(2)
    assert difference([one], [one, one], 1e-3) == "results have shapes (2,), (2,), expected (2,)"
    assert difference([one], [], 1e-3) == "results have shapes of nothing, expected (2,)"
