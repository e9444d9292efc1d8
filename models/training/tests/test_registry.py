"""The architectures, and what the command line makes of their presets."""

import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_training import __main__ as program  # noqa: E402
from hlorank_training.models.train import learning_rate_factor  # noqa: E402
from hlorank_training.models.training_settings import TrainSettings  # noqa: E402
from hlorank_training.registry import DEFAULT, REGISTRY  # noqa: E402


@pytest.fixture
def trained(monkeypatch):
    """The preset with which a training would begin."""
    found = []

    def begin(_, entry, preset, folder):
        found.append(preset)
        raise SystemExit

    monkeypatch.setattr("hlorank_training.runs.train_run", begin)

    def run(*arguments):
        given = ["--data", ".", "--hlorank", ".", "--out", "."]
        monkeypatch.setattr(sys, "argv", ["training", "train", *arguments, *given])
        with pytest.raises(SystemExit):
            program.main()
        return found.pop()

    return run


def refused(trained, *arguments):
    """What the command line says instead of training."""
    with pytest.raises(IndexError):
        trained(*arguments)


def test_an_unknown_architecture_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"'kaufmann'.*graphsage-transformer-segment, graphsage-"):
        REGISTRY.find("tile", "kaufmann")


def test_an_unknown_preset_lists_those_that_exist():
    with pytest.raises(ValueError, match="no preset 'large', expected: small"):
        REGISTRY.find("tile", DEFAULT).preset("large")


def test_the_command_line_overrides_the_presets_seed_and_time(trained):
    training = trained("tile", "--seed", "3", "--minutes", "2").training
    assert (training.seed, training.minutes, training.loss.name) == (3, 2.0, "logistic")


def test_only_features_of_tgraph_can_be_padded_with_another_value(trained):
    tgraph = ("layout", "--architecture", "tgraph-layout")
    assert trained(*tgraph, "--pad-value", "0").model.pad_value == 0
    refused(trained, "tile", "--architecture", "graphsage-segment", "--pad-value", "-1")


def test_the_defaults_of_the_command_line_exist():
    assert program.ARCHITECTURE == DEFAULT
    assert all(DEFAULT in REGISTRY.of_task(task) for task in ("layout", "tile"))


@pytest.mark.parametrize("entry", REGISTRY.entries, ids=lambda entry: f"{entry.task}-{entry.name}")
def test_all_presets_of_an_architecture_are_settings_of_one_class(entry):
    assert {preset.model.task for preset in entry.presets.values()} == {entry.task}
    assert len({type(preset.model) for preset in entry.presets.values()}) == 1
    for preset in entry.presets.values():
        assert entry.model(preset.model).architecture == entry.name
        assert preset.training.loss.function()


def test_the_learning_rate_rises_and_then_falls():
    cosine = TrainSettings(epochs=10, warm_up=0.2)
    factors = [learning_rate_factor(cosine, epoch) for epoch in range(10)]
    assert factors[:3] == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1]
    assert factors[2:] == sorted(factors[2:], reverse=True)
    assert learning_rate_factor(TrainSettings(decay=0.9), 2) == pytest.approx(0.81)
