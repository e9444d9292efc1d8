import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from hlorank_research import commands  # noqa: E402
from hlorank_research.__main__ import main  # noqa: E402
from hlorank_research.papers.registry import REGISTRY  # noqa: E402


@pytest.fixture
def trained(monkeypatch):
    """The presets with which trainings would begin."""
    found = []

    def begin(_, entry, preset, folder):
        found.append(preset)
        raise SystemExit

    monkeypatch.setattr("hlorank_training.runs.train_run", begin)

    def run(*arguments):
        given = ["--data", ".", "--hlorank", ".", "--out", "."]
        monkeypatch.setattr(sys, "argv", ["research", "train", *arguments, *given])
        with pytest.raises(SystemExit):
            main()
        return found.pop()

    return run


def test_a_papers_loss_trains_any_architecture(trained):
    loss = trained("tile", "--loss", "kaufman-hinge").training.loss
    assert loss.name == "kaufman-hinge" and loss.function()


@pytest.mark.parametrize("entry", REGISTRY.entries, ids=lambda entry: f"{entry.task}-{entry.name}")
def test_all_presets_of_an_architecture_are_settings_of_one_class(entry):
    assert {preset.model.task for preset in entry.presets.values()} == {entry.task}
    assert len({type(preset.model) for preset in entry.presets.values()}) == 1
    for preset in entry.presets.values():
        assert entry.model(preset.model).architecture == entry.name


def test_only_features_of_tgraph_can_be_padded_with_another_value(trained):
    tgraph = ("layout", "--architecture", "tgraph-layout")
    assert trained(*tgraph, "--pad-value", "0").model.pad_value == 0
    entry = REGISTRY.find("tile", "graphsage-segment")
    settings = entry.preset("small").model
    with pytest.raises(SystemExit, match=r"features of .* are always padded with 0"):
        commands._padded(settings, entry, -1)


def test_the_presets_with_the_published_sizes_draw_as_their_papers_do():
    kaufman = REGISTRY.find("tile", "kaufman-sage-lstm")
    res_model = REGISTRY.find("layout", "tpugraphs-res-model")
    assert kaufman.preset("paper").training.even_families
    assert res_model.preset("paper").training.favour_fast
