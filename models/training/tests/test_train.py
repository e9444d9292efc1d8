"""Architectures and presets, losses, and training that keeps the best."""

import sys
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from examples import as_graph, example  # noqa: E402
from hlorank_training import __main__ as program  # noqa: E402
from hlorank_training.data.dataset import Graph, Segment, distinct  # noqa: E402
from hlorank_training.models.train import (  # noqa: E402
    Keeping,
    draw_graphs,
    learning_rate_factor,
    train,
)
from hlorank_training.models.training_settings import LossSettings, TrainSettings  # noqa: E402
from hlorank_training.registry import DEFAULT, REGISTRY  # noqa: E402

RUNTIMES = torch.tensor([10, 20, 30])


@pytest.mark.parametrize(
    ("settings", "scores", "expected"),
    [
        (LossSettings("kaufman-hinge"), [0.0, 0.5, 2.0], 0.16667),
        (LossSettings("kaufman-hinge"), [1.0], 0),
        (LossSettings("tgraph-hinge-mean"), [0.0, 0.5, 2.0], 0.05556),
        (LossSettings("tgraph-hinge-mean"), [1.0], 0),
        (LossSettings("gst-hinge"), [0.0, 0.5, 2.0], 0),
        (LossSettings("gst-hinge"), [0.0, 0.04], 0.06),
        (LossSettings("tpugraphs-list-mle", temperature=1), [0.0, 0.5, 2.0], 0.78043),
        (LossSettings("tpugraphs-list-mle", temperature=10), [0.0, 0.5, 2.0], 1.65407),
        (LossSettings("tpugraphs-list-mle"), [1.0], 0),
    ],
    ids=str,
)
def test_a_papers_loss_has_the_worked_examples_value_in_any_order(settings, scores, expected):
    scores = torch.tensor(scores)
    runtimes = RUNTIMES[: len(scores)]
    for shift in (0, 1):
        loss = settings.function()(scores.roll(shift), runtimes.roll(shift))
        assert float(loss) == pytest.approx(expected, abs=1e-5)


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


ENTRY = REGISTRY.find("tile", "graphsage-segment")
GRAPHS = [as_graph(example(nodes=20, configs=12, seed=seed, columns=222)) for seed in range(3)]


def trained(minutes: float, state=None, seed: int = 1):
    preset = ENTRY.preset("small")
    training = replace(preset.training, epochs=4, minutes=minutes, seed=seed)
    preset = replace(preset, model=replace(preset.model, hidden=16), training=training)
    return train(ENTRY.model, preset, GRAPHS, GRAPHS, Keeping(state=state))


def test_a_stopped_training_goes_on_as_if_it_had_not_been_stopped(tmp_path):
    whole = trained(5)
    stopped = trained(0, tmp_path / "state.pt")
    assert len(stopped.history) == 1
    again = trained(5, tmp_path / "state.pt")
    assert len(again.history) == 4
    assert again.history == whole.history
    for name, value in whole.model.state_dict().items():
        assert torch.equal(again.model.state_dict()[name], value), name


def test_a_training_with_other_settings_does_not_go_on(tmp_path):
    trained(0, tmp_path / "state.pt")
    with pytest.raises(RuntimeError, match="other settings or graphs; choose another folder"):
        trained(0, tmp_path / "state.pt", seed=2)


def test_the_members_of_a_model_learn_on_their_own_and_are_served_as_their_mean():
    model = ENTRY.model.for_graphs(replace(ENTRY.preset("small").model, dropout=0.0), GRAPHS)
    chosen = [np.arange(len(GRAPHS[0].runtimes))]
    with torch.no_grad():
        model.encoder.eval()
        members = model.scores(GRAPHS[:1], chosen)
        served = model.eval().scores(GRAPHS[:1], chosen)
    assert members.shape == (len(GRAPHS[0].runtimes), 2)
    assert torch.equal(members.mean(-1), served)
    model.train().scores(GRAPHS[:1], chosen)[:, 1].sum().backward()
    learning = {name for name, weight in model.named_parameters() if weight.grad is not None}
    moved = {name for name in learning if model.get_parameter(name).grad.any()}
    assert moved and all(name.startswith("encoder.loops.member.") for name in moved)


@pytest.mark.parametrize(("repeated", "expected"), [("mean", [7, 3, 5]), ("smallest", [4, 3, 5])])
def test_a_configuration_that_was_measured_repeatedly_has_one_run_time(repeated, expected):
    nothing = np.empty(0)
    segments = [
        Segment(nothing, nothing, nothing, np.zeros((2, 1), np.float32), np.array(choice))
        for choice in ([0, 1, 0, 0], [0, 0, 0, 1])
    ]
    graph = Graph("graph", tuple(segments), np.array([10, 3, 4, 5]), None)
    once = distinct(graph, repeated)
    assert once.runtimes.tolist() == expected
    assert once.choices().tolist() == [[0, 0], [1, 0], [0, 1]]


DRAWN = [
    Graph(f"g{number}", (), np.array([1, 2]), None, "large" if number else "small")
    for number in range(10)
]
"""One graph of a family, and nine of another."""


def shares(even_families: bool, epochs: int = 400) -> np.ndarray:
    """The share of every graph among those that are drawn in some epochs."""
    random = np.random.default_rng(1)
    drawn = np.concatenate([draw_graphs(random, DRAWN, even_families) for _ in range(epochs)])
    assert len(drawn) == epochs * len(DRAWN)
    return np.bincount(drawn, minlength=len(DRAWN)) / len(drawn)


def test_every_graph_is_drawn_once_in_an_epoch():
    assert shares(even_families=False).tolist() == [0.1] * 10


def test_families_are_drawn_evenly_and_graphs_evenly_within_their_family():
    found = shares(even_families=True)
    assert found[0] == pytest.approx(1 / 2, abs=0.03)
    assert found[1:] == pytest.approx([1 / 18] * 9, abs=0.015)


@pytest.fixture
def started(monkeypatch):
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


def test_an_unknown_architecture_or_preset_lists_those_that_exist():
    with pytest.raises(ValueError, match=r"'kaufmann'.*graphsage-transformer-segment, graphsage-"):
        REGISTRY.find("tile", "kaufmann")
    with pytest.raises(ValueError, match="no preset 'large', expected: small"):
        REGISTRY.find("tile", DEFAULT).preset("large")


def test_the_command_line_overrides_the_presets_seed_and_time(started):
    training = started("tile", "--seed", "3", "--minutes", "2").training
    assert (training.seed, training.minutes, training.loss.name) == (3, 2.0, "logistic")


def test_only_features_of_tgraph_can_be_padded_with_another_value(started):
    tgraph = ("layout", "--architecture", "tgraph-layout")
    assert started(*tgraph, "--pad-value", "0").model.pad_value == 0
    with pytest.raises(IndexError):  # refused before a training began
        started("tile", "--architecture", "graphsage-segment", "--pad-value", "-1")


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
