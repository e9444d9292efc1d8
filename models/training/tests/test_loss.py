import math

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training.models.loss import LossSettings  # noqa: E402

RUNTIMES = torch.tensor([100, 200, 300])
RIGHT, WRONG = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([2.0, 1.0, 0.0])


@pytest.mark.parametrize("name", ["logistic", "hinge", "list_mle"])
def test_a_ranking_loss_falls_as_the_slower_configuration_scores_higher(name):
    loss = LossSettings(name).function()
    assert loss(RIGHT, RUNTIMES) < loss(WRONG, RUNTIMES)


@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_differences_inside_the_noise_teach_nothing(name):
    scores = torch.tensor([0.0, 5.0], requires_grad=True)
    LossSettings(name, noise=0.01).function()(scores, torch.tensor([1000, 1001])).backward()
    assert scores.grad.tolist() == [0, 0]


def test_a_hinge_asks_for_a_margin_of_one_and_no_more():
    hinge = LossSettings("hinge").function()
    assert hinge(torch.tensor([0.0, 1.0]), torch.tensor([100, 200])) == 0
    assert hinge(torch.tensor([0.0, 0.25]), torch.tensor([100, 200])) == 0.75


def test_list_mle_is_the_likelihood_of_drawing_the_true_order():
    scores = torch.tensor([1.0, 3.0])
    slowest_first = math.exp(3) / (math.exp(3) + math.exp(1))
    loss = LossSettings("list_mle").function()(scores, torch.tensor([100, 200]))
    assert float(loss) == pytest.approx(-math.log(slowest_first) / 2)


def test_the_absolute_loss_is_zero_at_the_logarithm_of_milliseconds():
    loss = LossSettings("log_mse").function()
    assert (
        float(loss(torch.log(torch.tensor([0.5, 2.0])), torch.tensor([500_000, 2_000_000]))) < 1e-9
    )


def test_an_unknown_loss_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match="logistic, hinge, list_mle, log_mse"):
        LossSettings("mse").function()
