"""Kaufman's reductions of the model of kernels, and the comparison that trains them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")

from test_kernel_work import kernel, node  # noqa: E402

from hlorank_research.comparisons import fusions  # noqa: E402
from hlorank_research.comparisons.fusions import Fold, FusionComparison  # noqa: E402
from hlorank_research.papers.reduced_kernel_time import (  # noqa: E402
    REDUCTIONS,
    ReducedKernelTimeModel,
    ReducedSettings,
)
from hlorank_training.data.kernels import FusedProgram, KernelData  # noqa: E402
from hlorank_training.models.kernel_batch import make_batch  # noqa: E402
from hlorank_training.models.kernel_time import (  # noqa: E402
    KernelTimeModel,
    KernelTimeSettings,
)
from hlorank_training.models.train_kernels import KernelTraining, train_kernels  # noqa: E402


def gate(rows, family="a"):
    nodes = [
        node("parameter", (rows, 64)),
        node("parameter", (rows, 1)),
        node("tanh", (rows, 64), (0,)),
        node("broadcast", (rows, 64), (1,), (0, 1)),
        node("multiply", (rows, 64), (2, 3)),
    ]
    return replace(kernel(*nodes, nanoseconds=100 + 3.0 * rows), families=frozenset(family))


@pytest.fixture(scope="module")
def data() -> KernelData:
    """Two families, whose kernels take a time in proportion to their rows."""
    rows = np.random.default_rng(0).integers(50, 2000, 120)
    kernels = tuple(gate(int(count), "ab"[number % 2]) for number, count in enumerate(rows))
    runs = tuple(np.array([number]) for number in range(0, 120, 2))
    times = np.array([kernels[run[0]].nanoseconds for run in runs])
    passes = np.stack([times, times])
    programs = (FusedProgram(name, name, Path(f"{name}.pb"), runs, passes) for name in "ab")
    return KernelData("0" * 64, kernels, tuple(programs))


def renumbered(one, order):
    place = np.argsort(order)
    return replace(
        one, opcode=one.opcode[order], features=one.features[order], edges=place[one.edges]
    )


MODELS = {
    "work": (KernelTimeModel, KernelTimeSettings),
    **{name: (ReducedKernelTimeModel, ReducedSettings) for name in REDUCTIONS},
}


def settings(reduction: str, **changes) -> KernelTimeSettings:
    reduced = {} if reduction == "work" else {"reduction": reduction}
    return MODELS[reduction][1](hidden=16, **reduced, **changes)


def untrained(reduction: str, data: KernelData) -> KernelTimeModel:
    torch.manual_seed(0)
    model = MODELS[reduction][0](settings(reduction))
    model.encoder.fit(data.kernels)
    return model


@pytest.mark.parametrize("reduction", MODELS)
def test_only_the_lstm_reads_nodes_in_their_order(data, reduction):
    model = untrained(reduction, data)
    one = gate(100)
    alone, again = model.nanoseconds([one, renumbered(one, np.array([1, 0, 3, 2, 4]))])
    assert (again == pytest.approx(alone, rel=1e-5)) == (reduction != "lstm")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_a_kernel_has_the_same_time_beside_larger_ones(data, reduction):
    model = untrained(reduction, data).eval()
    with torch.no_grad():
        times = []
        for others in ([], [long_chain(30)], [long_chain(60)]):
            batch = make_batch([gate(100), *others], np.arange(1 + len(others)))
            times.append(float(model(batch, model.encoder.work(batch))[0]))
    assert times[1:] == pytest.approx([times[0]] * 2, abs=1e-5)


def long_chain(length):
    nodes = [node("parameter", (60, 64))]
    nodes += [node("tanh", (60, 64), (last,)) for last in range(length)]
    return kernel(*nodes, nanoseconds=1000.0)


@pytest.mark.parametrize("reduction", MODELS)
def test_every_reduction_learns_times(data, reduction):
    model_class = MODELS[reduction][0]
    training = KernelTraining(epochs=40, block_nodes=64, averaging=0.9)
    small = settings(reduction, dropout=0.0, sage_layers=1)
    model, history = train_kernels(data, np.arange(100), small, training, model_class)
    assert history[-1]["loss"] < 0.1 * history[0]["loss"]
    unseen = model.nanoseconds(data.kernels[100:])
    assert unseen == pytest.approx(data.nanoseconds()[100:], rel=0.3)


def test_an_unknown_reduction_is_refused():
    with pytest.raises(ValueError, match="reduction 'sum'"):
        ReducedKernelTimeModel(ReducedSettings(reduction="sum"))


def test_columns_are_means_and_the_maximum_over_the_nodes(data):
    model = ReducedKernelTimeModel(settings("columns"))
    batch = make_batch([gate(100)], np.array([0]))
    nodes = torch.randn(*batch.mask.shape, 16)
    work = model.encoder.work(batch)
    real = nodes[0, :5]
    share = work.work[0, :5] / work.work.sum()
    columns = torch.cat([real.mean(0), real.amax(0), share @ real])
    assert torch.allclose(model.encoder.pooled(nodes, batch.mask, work)[0], columns, atol=1e-6)


def test_a_stopped_comparison_continues_unless_the_training_is_another(data, tmp_path, monkeypatch):
    monkeypatch.setattr(fusions, "read_kernels", lambda *_: data)
    trained = []

    def train(of, numbers, settings, training, model_class):
        trained.append((settings.reduction, numbers.tolist(), training.epochs))
        return train_kernels(of, numbers, settings, training, model_class)

    monkeypatch.setattr(fusions, "train_kernels", train)
    comparison = FusionComparison(data=tmp_path, hlorank=tmp_path, out=tmp_path, epochs=1)
    predicted = Fold(comparison, 0, "lstm").predict()
    held_out, *_ = fusions.family_folds(data.families)[0]
    others = [n for n, one in enumerate(data.kernels) if held_out not in one.families]
    assert trained == [("lstm", others, 1)]
    assert np.array_equal(Fold(comparison, 0, "lstm").predict(), predicted)
    assert len(trained) == 1
    longer = replace(comparison, epochs=2)
    assert not np.array_equal(Fold(longer, 0, "lstm").predict(), predicted)
    assert len(trained) == 2
