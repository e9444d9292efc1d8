"""What an artifact says of how far its rankings can be trusted, and of what it is for."""

import json

import numpy as np
import pytest

from hlorank_training.measuring.provenance import targets_of
from hlorank_training.shipping.calibration import LEAST_LISTS, of_list, write_calibration


def _write_list(path, configurations, run_times):
    np.savez(path, config_feat=np.float32(configurations), config_runtime=np.int64(run_times))
    return path


def _by_first_column(path, chosen):
    with np.load(path) as arrays:
        return arrays["config_feat"][chosen, 0]


def test_a_list_has_the_spread_of_its_scores_its_columns_and_its_tau(tmp_path):
    path = _write_list(tmp_path / "a.npz", [[1, 7], [2, 7], [3, 7], [4, 7]], [10, 20, 40, 30])
    found = of_list(path, _by_first_column)
    assert found["spread"] == pytest.approx(np.std([1, 2, 3, 4]), abs=1e-3)
    assert found["columns"] == pytest.approx([np.log([2, 3, 4, 5]).mean(), np.log(8)], abs=1e-3)
    assert found["tau"] == pytest.approx(4 / 6, abs=1e-3)


def test_a_long_list_is_looked_at_in_few_places(tmp_path):
    sizes = np.arange(3200)[:, None]
    path = _write_list(tmp_path / "a.npz", sizes, np.arange(3200) + 1)
    found = of_list(path, _by_first_column)
    assert found["columns"] == pytest.approx([np.log1p(np.arange(0, 3200, 200)).mean()], abs=1e-3)
    assert found["tau"] == 1


def test_few_lists_are_no_calibration(tmp_path):
    lists = [
        _write_list(tmp_path / f"{number}.npz", [[1], [2]], [1, 2]) for number in range(LEAST_LISTS)
    ]
    assert write_calibration(tmp_path, lists[1:], _by_first_column) == ()
    assert not (tmp_path / "calibration.json").exists()
    (name,) = write_calibration(tmp_path, lists, _by_first_column)
    assert len(json.loads((tmp_path / name).read_text())["lists"]) == LEAST_LISTS


def test_targets_are_what_collections_were_measured_on(tmp_path):
    sources = {
        "a": {"source": "iree:cpu", "iree-base-compiler": "3.13.0", "threads": 1},
        "b": {"source": "iree:cpu", "iree-base-compiler": "3.13.0", "threads": 1},
        "c": {"source": "xla:cpu", "jax": "0.10.2", "threads": 2},
        "d": {"source": "triton:NVIDIA H100", "triton": "3.6.0", "threads": 1},
        "e": {"source": "my compiler", "threads": 1},
    }
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        text = json.dumps({"processor": "AMD EPYC", **source})
        (tmp_path / name / "provenance.json").write_text(text)
    files = [tmp_path / name / "graph.pb" for name in (*sources, "without")]
    assert targets_of(files) == [
        {"hardware": hardware, "compiler": compiler, "version": version, "flags": flags}
        for hardware, compiler, version, flags in (
            ("AMD EPYC", "IREE", "3.13.0", ["1 thread"]),
            ("AMD EPYC", "XLA", "of jax 0.10.2", ["2 threads"]),
            ("NVIDIA H100", "Triton", "3.6.0", ["1 thread"]),
        )
    ]
