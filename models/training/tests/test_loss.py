"""The losses on worked examples."""

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training.models.training_settings import LossSettings  # noqa: E402

SCORES, RUNTIMES = torch.tensor([0.0, 0.5, 2.0]), torch.tensor([10, 20, 30])
EXPECTED = [
    (LossSettings("kaufman-hinge"), 0.16667),
    (LossSettings("tgraph-hinge-mean"), 0.05556),
    (LossSettings("gst-hinge"), 0.0),
    (LossSettings("tpugraphs-list-mle", temperature=1), 0.78043),
    (LossSettings("tpugraphs-list-mle", temperature=10), 1.65407),
]


@pytest.mark.parametrize("settings, expected", EXPECTED, ids=lambda value: str(value))
def test_a_papers_loss_has_the_worked_examples_value(settings, expected):
    for order in ([0, 1, 2], [2, 0, 1]):
        loss = settings.function()(SCORES[order], RUNTIMES[order])
        assert float(loss) == pytest.approx(expected, abs=1e-5)


def test_gst_asks_for_a_margin_of_a_tenth():
    loss = LossSettings("gst-hinge").function()
    assert float(loss(torch.tensor([0.0, 0.04]), RUNTIMES[:2])) == pytest.approx(0.06)


@pytest.mark.parametrize("name", ["kaufman-hinge", "tgraph-hinge-mean", "tpugraphs-list-mle"])
def test_one_configuration_alone_has_a_finite_loss(name):
    loss = LossSettings(name).function()(torch.tensor([1.0]), torch.tensor([100]))
    assert float(loss) == pytest.approx(0)


def test_equal_run_times_are_ordered_at_random():
    loss = LossSettings("tpugraphs-list-mle").function()
    seen = {
        round(float(loss(torch.tensor([0.0, 2.0]), torch.tensor([5, 5]))), 3) for _ in range(64)
    }
    assert seen == {0.127, 2.127}


def test_the_logistic_loss_falls_as_the_slower_configuration_scores_higher():
    right, wrong = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([2.0, 1.0, 0.0])
    loss = LossSettings().function()
    assert loss(right, RUNTIMES) < loss(wrong, RUNTIMES)


def test_differences_inside_the_noise_teach_nothing():
    scores = torch.tensor([0.0, 5.0], requires_grad=True)
    LossSettings(noise=0.01).function()(scores, torch.tensor([1000, 1001])).backward()
    assert scores.grad.tolist() == [0, 0]
