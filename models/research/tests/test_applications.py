from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed")

from hlorank_research.comparisons.applications import (
    application_errors,
    applications_table,
    percentage_error,
    table_mean,
    tile_size_error,
)
from hlorank_research.papers.losses import PaperLoss, predicted_nanoseconds
from hlorank_training.data.dataset import Graph
from hlorank_training.data.prepare import Prepared
from hlorank_training.data.sources import Source
from hlorank_training.data.split import Split

FIRST = np.array([2.0, 1.0, 3.0]), np.array([100_000, 120_000, 400_000])
"""The lowest score picks 120 us, while 100 us is the best."""
SECOND = np.array([0.0, 5.0]), np.array([300_000, 900_000])
"""The lowest score picks the best tile."""


def test_the_tile_size_error_adds_up_the_times_of_a_programs_kernels():
    # (120 - 100 + 300 - 300) / (100 + 300), and not the mean of 20 % and 0 %.
    assert tile_size_error([FIRST, SECOND]) == pytest.approx(5.0)
    assert tile_size_error([FIRST]) == pytest.approx(20.0)
    assert tile_size_error([SECOND]) == 0


def test_kaufmans_own_mean_over_applications_is_geometric():
    published = (9.7, 1.5, 3.1, 3.9, 8.0, 2.8, 2.7, 3.4)
    assert round(table_mean(published), 1) == 3.7
    assert table_mean([4.0, 0.0, 9.0]) == pytest.approx(6.0)


def test_the_percentage_error_leaves_out_run_times_below_five_microseconds():
    runtimes = np.array([4_999, 5_000, 20_000])
    assert percentage_error(np.array([1.0, 6_000, 15_000]), runtimes) == pytest.approx(22.5)
    assert percentage_error(np.array([1.0]), runtimes[:1]) is None


@pytest.mark.parametrize("name", ["log_mse", "kaufman-log-mse", "singh-relative"])
def test_scores_of_an_absolute_loss_become_the_run_times_at_which_it_is_zero(name):
    import torch

    scores = np.array([0.5, 2.0])
    runtimes = torch.from_numpy(np.rint(predicted_nanoseconds(name)(scores)).astype(np.int64))
    loss = PaperLoss(name).function()(torch.from_numpy(scores).float(), runtimes)
    assert float(loss) == pytest.approx(0, abs=1e-3)
    assert predicted_nanoseconds("kaufman-hinge") is None


@pytest.fixture
def prepared() -> Prepared:
    """Two kernels of one family and one of another."""
    kernels = {"a1": FIRST, "a2": SECOND, "b1": FIRST}

    class Measured(Prepared):
        def graphs(self, names):
            return [Graph(name, (), kernels[name][1], None) for name in names]

    sources = {name: Source(name, Path("k.pb"), None, name, name[0], None, 0.9) for name in kernels}
    return Measured("0" * 64, Split((), (), tuple(kernels)), {}, sources)


def test_errors_are_of_the_held_out_kernels_by_family(prepared):
    scores = {"a1": FIRST[0], "a2": SECOND[0], "b1": FIRST[0]}
    errors = application_errors(prepared, lambda graph: scores[graph.name])
    assert {name: (one.kernels, one.tile_size) for name, one in errors.items()} == {
        "a": (2, pytest.approx(5.0)),
        "b": (1, pytest.approx(20.0)),
    }
    assert errors["a"].kendall_tau == pytest.approx((1 / 3 + 1) / 2)
    assert errors["a"].percentage is None
    cells = [[c.strip() for c in line.split("|")[1:-1]] for line in _lines(errors)]
    assert cells[0] == ["application", "kernels", "Tile-Size APE", "tau"]
    assert cells[-2:] == [["median", "3", "12.5%", "0.50"], ["mean", "3", "10.0%", "0.50"]]


def test_absolute_scores_have_a_percentage_error_too(prepared):
    errors = application_errors(prepared, lambda graph: graph.runtimes / 2e6, lambda s: s * 1e6)
    assert {name: one.percentage for name, one in errors.items()} == {"a": 50, "b": 50}
    assert _lines(errors)[0].split("|")[5].strip() == "MAPE"


def _lines(errors) -> list[str]:
    return applications_table(errors).splitlines()
