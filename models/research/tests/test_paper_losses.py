"""The losses of the papers on a worked example."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_research.__main__ import ALL_LOSSES  # noqa: E402
from hlorank_research.papers.losses import (  # noqa: E402
    PaperLoss,
    loss_names,
    relative_error,
)

SCORES, RUNTIMES = torch.tensor([0.0, 0.5, 2.0]), torch.tensor([10, 20, 30])
EXPECTED = [
    (PaperLoss("kaufman-hinge"), 0.16667),
    (PaperLoss("kaufman-logistic"), 0.26747),
    (PaperLoss("tgraph-hinge"), 0.5),
    (PaperLoss("tgraph-hinge-mean"), 0.05556),
    (PaperLoss("gst-hinge"), 0.0),
    (PaperLoss("tpugraphs-list-mle", temperature=1), 0.78043),
    (PaperLoss("tpugraphs-list-mle", temperature=10), 1.65407),
]


@pytest.mark.parametrize("settings, expected", EXPECTED, ids=lambda value: str(value))
def test_a_ranking_loss_has_the_worked_examples_value(settings, expected):
    for order in ([0, 1, 2], [2, 0, 1]):
        loss = settings.function()(SCORES[order], RUNTIMES[order])
        assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_gst_asks_for_a_margin_of_a_tenth():
    loss = PaperLoss("gst-hinge").function()
    assert float(loss(torch.tensor([0.0, 0.04]), RUNTIMES[:2])) == pytest.approx(0.06)


def test_the_absolute_loss_is_zero_at_the_logarithm_of_microseconds():
    loss = PaperLoss("kaufman-log-mse").function()
    microseconds = torch.tensor([5.0, 7.0])
    assert float(loss(torch.log(microseconds), torch.tensor([5_000, 7_000]))) < 1e-9
    assert float(loss(torch.log(microseconds) + 2, torch.tensor([5_000, 7_000]))) == pytest.approx(
        4
    )


def test_the_relative_error_is_weighted_by_speed_and_by_the_deviation():
    # Scored 3 ms, measured 2 ms with a deviation of 0.1 ms: 0.5 / 2 / 0.1, and 0 for the best.
    runtimes = torch.tensor([2_000_000, 1_000_000])
    loss = relative_error(torch.tensor([3.0, 1.0]), runtimes, deviation=torch.tensor([0.1, 0.1]))
    assert float(loss) == pytest.approx(2.5 / 2)


@pytest.mark.parametrize("name", ["kaufman-hinge", "tgraph-hinge-mean", "tpugraphs-list-mle"])
def test_one_configuration_alone_has_a_finite_loss(name):
    loss = PaperLoss(name).function()(torch.tensor([1.0]), torch.tensor([100]))
    assert float(loss) == pytest.approx(0)


def test_equal_run_times_are_ordered_at_random():
    loss = PaperLoss("tpugraphs-list-mle").function()
    seen = {
        round(float(loss(torch.tensor([0.0, 2.0]), torch.tensor([5, 5]))), 3) for _ in range(64)
    }
    assert seen == {0.127, 2.127}


def test_the_command_line_offers_every_loss():
    assert list(ALL_LOSSES) == loss_names()
