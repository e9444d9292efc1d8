from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training import options  # noqa: E402
from hlorank_training.commands import chosen  # noqa: E402
from hlorank_training.models.loss import LOSSES  # noqa: E402
from hlorank_training.models.registry import DEFAULT, REGISTRY  # noqa: E402
from hlorank_training.models.train import learning_rate_factor  # noqa: E402
from hlorank_training.models.training_settings import TrainSettings  # noqa: E402


def arguments(**changes) -> SimpleNamespace:
    given = {"task": "tile", "architecture": DEFAULT, "seed": 3, "minutes": 2.0, "loss": None}
    return SimpleNamespace(**given | changes)


def test_an_unknown_architecture_lists_those_that_exist():
    with pytest.raises(SystemExit, match=r"'kaufmann'.*graphsage-transformer-segment, graphsage-"):
        chosen(arguments(architecture="kaufmann"), REGISTRY, "small")


def test_an_unknown_preset_lists_those_that_exist():
    with pytest.raises(SystemExit, match="no preset 'large', expected: small"):
        chosen(arguments(), REGISTRY, "large")


def test_the_command_line_overrides_the_presets_loss_and_time():
    _, preset = chosen(arguments(loss="hinge"), REGISTRY, "small")
    training = preset.training
    assert (training.seed, training.minutes, training.loss.name) == (3, 2.0, "hinge")


def test_the_defaults_of_the_command_line_exist():
    assert options.ARCHITECTURE == DEFAULT
    assert all(DEFAULT in REGISTRY.of_task(task) for task in options.TASKS)
    assert tuple(LOSSES) == options.LOSSES


@pytest.mark.parametrize("entry", REGISTRY.entries, ids=lambda entry: f"{entry.task}-{entry.name}")
def test_every_architecture_has_its_name(entry):
    assert {preset.model.task for preset in entry.presets.values()} == {entry.task}
    for preset in entry.presets.values():
        assert entry.model(preset.model).architecture == entry.name


def test_the_learning_rate_rises_and_then_falls():
    cosine = TrainSettings(epochs=10, warm_up=0.2)
    factors = [learning_rate_factor(cosine, epoch) for epoch in range(10)]
    assert factors[:3] == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1]
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert learning_rate_factor(TrainSettings(decay=0.9), 2) == pytest.approx(0.81)
