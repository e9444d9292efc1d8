"""Models of the run times of kernels: what kernels compute and read, by hand on small kernels, and
then models that are trained, kept, exported and judged."""

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

from examples import node_features  # noqa: E402
from hlorank_training.data.kernels import (  # noqa: E402
    FusedProgram,
    KernelData,
    MeasuredKernel,
    family_folds,
)
from hlorank_training.fusion_runs import fusion_quality  # noqa: E402
from hlorank_training.models.kernel_batch import batches, make_batch  # noqa: E402
from hlorank_training.models.kernel_time import (  # noqa: E402
    KernelTimeModel,
    KernelTimeSettings,
)
from hlorank_training.models.kernel_work import KernelWork, Work  # noqa: E402
from hlorank_training.models.opcode_ids import OPCODE_IDS  # noqa: E402
from hlorank_training.models.train_kernels import (  # noqa: E402
    KernelTraining,
    kernel_weights,
    train_kernels,
)
from hlorank_training.shipping import kernel_artifact  # noqa: E402


def node(opcode, shape, operands=(), dimensions=()):
    return opcode, shape, operands, dimensions


def kernel(*nodes, nanoseconds=1e4) -> MeasuredKernel:
    """A kernel of nodes, of which the last one is the root."""
    opcodes, shapes, operands, dimensions = zip(*nodes, strict=True)
    features = node_features(shapes, dimensions=dimensions)
    edges = [(user, operand) for user, those in enumerate(operands) for operand in those]
    opcodes = np.array([OPCODE_IDS[opcode] for opcode in opcodes])
    edges = np.array(edges, np.int64).reshape(-1, 2)
    return MeasuredKernel("0", opcodes, features, edges, nanoseconds, frozenset("a"))


def work_of(one: MeasuredKernel) -> Work:
    batch = make_batch([one], np.array([0]))
    return KernelWork()(batch.opcode, batch.features, batch.operands, batch.mask)


def evaluations(one: MeasuredKernel) -> list[float]:
    return work_of(one).evaluations[0, : len(one.opcode)].tolist()


MATRIX = node("parameter", (8, 4))
CURVED = node("tanh", (8, 4), (0,))


def test_a_diamond_of_elementwise_nodes_is_computed_once():
    diamonds = [MATRIX, CURVED]
    for last in range(1, 21, 2):
        diamonds += [node("negate", (8, 4), (last,)), node("add", (8, 4), (last, last + 1))]
    assert evaluations(kernel(*diamonds)) == [32] * len(diamonds)


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        pytest.param(
            [MATRIX, CURVED, node("reverse", (8, 4), (1,), (1,)), node("add", (8, 4), (1, 2))],
            [64, 64, 32, 32],
            id="every other index computes a node again",
        ),
        pytest.param(
            [
                MATRIX,
                CURVED,
                node("reduce", (8,), (1,), (1,)),
                node("broadcast", (8, 3), (2,), (0,)),
            ],
            [96, 96, 24, 24],
            id="a reduction computes all that it reads",
        ),
        pytest.param(
            [MATRIX, node("parameter", (8, 12)), node("concatenate", (8, 16), (0, 1), (1,))],
            [32, 96, 128],
            id="a concatenation computes a part",
        ),
    ],
)
def test_a_node_is_computed_as_often_as_it_is_read(nodes, expected):
    assert evaluations(kernel(*nodes)) == expected


def test_a_reduction_works_on_what_it_reads():
    assert work_of(kernel(MATRIX, node("reduce", (8,), (0,), (1,)))).work[0, 1] == 32


def test_a_column_is_read_in_as_many_rows_as_it_has_elements():
    column = kernel(node("parameter", (64, 32)), node("slice", (64, 1), (0,)))
    rows = kernel(node("parameter", (64, 32)), node("slice", (2, 32), (0,)))
    assert [work_of(one).rows[0, 0] for one in (column, rows)] == [64, 2]
    # A whole line for each element, but no more than the parameter has.
    assert work_of(column).bytes[0, 0] == 64 * (64 + 4)
    assert work_of(rows).bytes[0, 0] == 2 * 64 + 64 * 4


def test_a_transpose_of_the_minor_dimension_reads_element_by_element():
    def rows(permutation, shape):
        start = node("parameter", (4, 8, 16))
        return work_of(kernel(start, node("transpose", shape, (0,), permutation))).rows[0, 0]

    assert rows((0, 2, 1), (4, 16, 8)) == 4 * 8 * 16
    assert rows((1, 0, 2), (8, 4, 16)) == 4 * 8


@pytest.mark.parametrize(
    ("opcode", "shape", "dimensions", "changes"),
    [
        ("concatenate", (8, 20), (1,), 1),
        ("concatenate", (20, 16), (0,), 0),
        ("slice", (8, 15), (), 1),
        ("slice", (7, 16), (), 0),
        ("reduce", (8,), (1,), 1),
        ("reduce", (16,), (0,), 0),
        ("broadcast", (8, 16, 4), (0, 1), 1),
        ("broadcast", (4, 8, 16), (1, 2), 0),
        ("reverse", (8, 16), (1,), 1),
        ("tanh", (8, 16), (), 0),
    ],
)
def test_what_changes_the_minor_dimension_is_known(opcode, shape, dimensions, changes):
    one = kernel(node("parameter", (8, 16)), node(opcode, shape, (0,), dimensions))
    assert work_of(one).access.changes[0].tolist()[:2] == [0, changes]


def test_two_transposes_that_cancel_leave_a_walk_along_memory():
    there = node("transpose", (4, 16, 8), (0,), (0, 2, 1))
    back = node("transpose", (4, 8, 16), (1,), (0, 2, 1))
    found = work_of(kernel(node("parameter", (4, 8, 16)), there, back)).walk
    assert found.along[0, :3].tolist() == [1, 0, 1]
    assert found.across[0, :3].tolist() == [0, 1, 0]
    # Of the transposed array, 16 iterations pass between consecutive elements.
    assert found.distance[0, :3].exp().tolist() == pytest.approx([1, 16, 1])


def test_a_reshape_walks_the_dimension_with_its_stride():
    split = node("reshape", (6, 4, 2), (0,))
    found = work_of(kernel(node("parameter", (24, 2)), split))
    assert found.access.moves[0, 1, :3, :2].tolist() == [[1, 0], [1, 0], [0, 1]]
    assert found.walk.along[0, :2].tolist() == [1, 1]


def test_a_reduction_is_a_loop_inside():
    def walks(shape, dimension):
        found = work_of(
            kernel(node("parameter", (8, 16)), node("reduce", shape, (0,), (dimension,)))
        ).walk
        return found.along[0, 0], found.across[0, 0], found.reduced_along[0, 0]

    assert walks((16,), 0) == (1, 0, 0)
    assert walks((8,), 1) == (0, 1, 1)


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


@pytest.fixture(scope="module")
def exported(trained, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("exported")
    kernel_artifact._write_onnx(trained, folder)
    return folder


def test_an_exported_model_gives_the_seconds_of_the_trained_one(data, trained, exported):
    encoder = kernel_artifact.session(exported / "encoder.onnx")
    assert [one.name for one in encoder.get_inputs()] == list(kernel_artifact.KERNEL_INPUTS)
    seconds = kernel_artifact._seconds(encoder, data.kernels)
    assert seconds == pytest.approx(trained.nanoseconds(data.kernels) * 1e-9, rel=1e-4)
    head = kernel_artifact.session(exported / "head.onnx")
    sums = np.array([[1e-6], [2.5]], np.float32)
    assert head.run(None, {"sum": sums})[0].tolist() == sums[:, 0].tolist()


def test_exported_bits_do_not_depend_on_the_number_of_kernels(data, exported):
    encoder = kernel_artifact.session(exported / "encoder.onnx")
    same = [one for one in data.kernels if len(one.opcode) in (5, 6, 7, 8)]
    for count in (4, 8, 16):
        alone = kernel_artifact._seconds(encoder, same[:4])
        assert np.array_equal(kernel_artifact._seconds(encoder, same[:count])[:4], alone)


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
