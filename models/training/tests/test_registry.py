from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training import commands  # noqa: E402
from hlorank_training.__main__ import ARCHITECTURE  # noqa: E402
from hlorank_training.models.architectures.registry import DEFAULT, architectures  # noqa: E402
from hlorank_training.models.train import learning_rate_factor  # noqa: E402
from hlorank_training.models.training_settings import TrainSettings  # noqa: E402

EVERY = [entry for task in ("layout", "tile") for entry in architectures(task).values()]


def arguments(**changes) -> SimpleNamespace:
    given = {"task": "tile", "architecture": DEFAULT, "preset": "small", "seed": 3, "minutes": 2.0}
    return SimpleNamespace(**{**given, "loss": None, "pad_value": None, **changes})


def test_an_unknown_architecture_lists_those_that_exist():
    with pytest.raises(SystemExit, match=r"'kaufmann'.*graphsage-transformer-segment, graphsage-"):
        commands._chosen(arguments(architecture="kaufmann"))


def test_an_unknown_preset_lists_those_that_exist():
    with pytest.raises(SystemExit, match="no preset 'large', expected: small"):
        commands._chosen(arguments(preset="large"))


def test_the_command_line_overrides_the_presets_loss_and_time():
    _, preset = commands._chosen(arguments(loss="kaufman-hinge"))
    training = preset.training
    assert (training.seed, training.minutes, training.loss.name) == (3, 2.0, "kaufman-hinge")


def test_the_default_of_the_command_line_exists():
    assert ARCHITECTURE == DEFAULT
    assert all(DEFAULT in architectures(task) for task in ("layout", "tile"))


@pytest.mark.parametrize("entry", EVERY, ids=lambda entry: f"{entry.task}-{entry.name}")
def test_all_presets_of_an_architecture_are_settings_of_one_class(entry):
    assert {preset.model.task for preset in entry.presets.values()} == {entry.task}
    assert len({type(preset.model) for preset in entry.presets.values()}) == 1
    for preset in entry.presets.values():
        assert entry.model(preset.model).architecture == entry.name


def test_the_learning_rate_rises_and_then_falls():
    cosine = TrainSettings(epochs=10, warm_up=0.2)
    factors = [learning_rate_factor(cosine, epoch) for epoch in range(10)]
    assert factors[:3] == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1]
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert learning_rate_factor(TrainSettings(decay=0.9), 2) == pytest.approx(0.81)


def test_only_features_of_tgraph_can_be_padded_with_another_value():
    tgraph = arguments(task="layout", architecture="tgraph-layout", pad_value=0)
    assert commands._chosen(tgraph)[1].model.pad_value == 0
    with pytest.raises(SystemExit, match=r"features of .* are always padded with 0"):
        commands._chosen(arguments(pad_value=-1))
