"""The model of the run times of kernels: trained, kept, exported and judged."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from test_kernel_work import kernel, node  # noqa: E402

from hlorank_training.data.kernels import FusedProgram, KernelData, family_folds  # noqa: E402
from hlorank_training.judging.fusions import fusion_quality  # noqa: E402
from hlorank_training.models.checkpoint import load_kernel_model, save_checkpoint  # noqa: E402
from hlorank_training.models.kernel_batch import batches, make_batch  # noqa: E402
from hlorank_training.models.kernel_time import (  # noqa: E402
    KernelTimeModel,
    KernelTimeSettings,
)
from hlorank_training.models.train_kernels import (  # noqa: E402
    KernelTraining,
    kernel_weights,
    train_kernels,
)
from hlorank_training.shipping import kernel_artifact  # noqa: E402

SMALL = KernelTimeSettings(hidden=16, opcode=4, sage_layers=1, dropout=0.0)


def chain(rows, length):
    """A kernel of several tanh, whose time is proportional to what it computes."""
    nodes = [node("parameter", (rows, 64))]
    nodes += [node("tanh", (rows, 64), (last,)) for last in range(length)]
    return kernel(*nodes, nanoseconds=100 + 0.7 * rows * 64 * length)


@pytest.fixture(scope="module")
def data() -> KernelData:
    random = np.random.default_rng(0)
    sizes = random.integers((50, 1), (900, 12), (200, 2))
    kernels = tuple(chain(int(rows), int(length)) for rows, length in sizes)
    times = np.array([one.nanoseconds for one in kernels])
    runs = tuple(np.arange(start, start + 4) for start in range(0, 60, 3))
    taken = np.array([times[run].sum() for run in runs])
    program = FusedProgram("chains", "a", Path("chains.pb"), runs, np.stack([taken, taken * 1.01]))
    return KernelData("0" * 64, kernels, (program,))


@pytest.fixture(scope="module")
def trained(data) -> KernelTimeModel:
    every = np.arange(len(data.kernels))
    training = KernelTraining(epochs=20, block_nodes=256, averaging=0.9)
    return train_kernels(data, every, SMALL, training)[0]


def test_a_trained_model_predicts_times_and_orders_configurations(data, trained):
    predicted = trained.nanoseconds(data.kernels)
    quality = fusion_quality(data, predicted, ["a"])
    assert quality["kernel_mape"] < 0.15 and quality["kernel_kendall_tau"] > 0.9
    assert quality["kendall_tau"] > 0.9 and quality["top1_slowdown"] < 0.1


def test_the_sums_of_measured_kernels_are_the_ceiling(data):
    best = fusion_quality(data, data.nanoseconds(), ["a"])
    assert [best[f"kernel_{name}"] for name in ("mape", "kendall_tau")] == [0, 1]
    taus = [best[f"kendall_tau{of}"] for of in ("", "_of_measured_kernels", "_between_passes")]
    assert taus == [1, 1, 1] and best["top1_slowdown"] == 0


def test_a_kernel_has_the_same_time_beside_larger_ones(data):
    torch.manual_seed(0)
    model = KernelTimeModel(KernelTimeSettings(hidden=16)).eval()
    model.encoder.fit(data.kernels)
    with torch.no_grad():
        times = []
        for others in ([], [chain(60, 30)], [chain(60, 60)]):
            batch = make_batch([chain(100, 3), *others], np.arange(1 + len(others)))
            times.append(float(model(batch, model.encoder.work(batch))[0]))
    assert times[1:] == pytest.approx([times[0]] * 2, abs=1e-5)


def test_an_exported_model_gives_the_seconds_of_the_trained_one(data, trained, tmp_path):
    kernel_artifact._write_onnx(trained, tmp_path)
    encoder = kernel_artifact.session(tmp_path / "encoder.onnx")
    assert [one.name for one in encoder.get_inputs()] == list(kernel_artifact.KERNEL_INPUTS)
    seconds = kernel_artifact._seconds(encoder, data.kernels)
    assert seconds == pytest.approx(trained.nanoseconds(data.kernels) * 1e-9, rel=1e-4)
    head = kernel_artifact.session(tmp_path / "head.onnx")
    sums = np.array([[1e-6], [2.5]], np.float32)
    assert head.run(None, {"sum": sums})[0].tolist() == sums[:, 0].tolist()


def test_exported_bits_do_not_depend_on_the_number_of_kernels(data, trained, tmp_path):
    kernel_artifact._write_onnx(trained, tmp_path)
    encoder = kernel_artifact.session(tmp_path / "encoder.onnx")
    same = [one for one in data.kernels if len(one.opcode) in (5, 6, 7, 8)]
    for count in (4, 8, 16):
        alone = kernel_artifact._seconds(encoder, same[:4])
        assert np.array_equal(kernel_artifact._seconds(encoder, same[:count])[:4], alone)


def test_weights_are_read_as_they_were_written(data, trained, tmp_path):
    save_checkpoint(tmp_path / "checkpoint.pt", trained)
    again = load_kernel_model(tmp_path / "checkpoint.pt")
    assert again.settings == trained.settings
    assert np.array_equal(again.nanoseconds(data.kernels), trained.nanoseconds(data.kernels))


def test_every_kernel_is_in_one_batch(data):
    numbers = np.concatenate([batch.numbers for batch in batches(data.kernels)])
    assert sorted(numbers) == list(range(len(data.kernels)))


def test_short_kernels_and_those_of_large_families_count_less():
    short, long = kernel(node("parameter", (4,)), nanoseconds=500.0), chain(500, 2)
    few, many = kernel_weights([short, long]).tolist(), kernel_weights([long] * 9).tolist()
    assert few[0] == pytest.approx(0.3 * few[1])
    assert many == pytest.approx([1.0] * 9)


def test_every_family_is_held_out_once():
    families = [f"family{number}" for number in range(13)]
    folds = family_folds(families)
    assert sorted(family for fold in folds for family in fold) == sorted(families)
    assert max(map(len, folds)) - min(map(len, folds)) <= 1
