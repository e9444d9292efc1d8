import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from hlorank_tune.measure.fusion.builder import Builder
from hlorank_tune.measure.fusion.graph import FusionGraph
from hlorank_tune.measure.fusion.kernels import configuration
from hlorank_tune.measure.fusion.limits import UNLIMITED
from hlorank_tune.measure.fusion.write import lone_kernel
from hlorank_tune.measure.schema import ModuleTuningData, ShapeProto

from hlorank_research.comparisons.fusions import fusion_tables, held_out_predictions
from hlorank_research.comparisons.kernel_sums import kernel_sums
from hlorank_research.comparisons.kernel_trees import KernelTrees
from hlorank_training.data.kernels import FusedProgram, KernelData, MeasuredKernel
from hlorank_training.judging.fusions import fusion_quality
from hlorank_training.measuring.kernel_times import ProgramKernels

PER_EVALUATION = 0.8


def program(rows, length, users=1):
    """A program of some tanh in a row, of which the last is read at several places."""
    floats = ShapeProto(element_type=11, dimensions=[rows, 64])
    builder = Builder("chain")
    main = builder.computation("main")
    value = builder.parameter(main, 0, floats)
    for _ in range(length):
        value = builder.add(main, "tanh", floats, [value]).id
    for _ in range(users - 1):
        turned = builder.add(main, "reverse", floats, [value]).id
        value = builder.add(main, "add", floats, [turned, value]).id
    graph = FusionGraph(
        builder.finish_module(main, builder.add(main, "negate", floats, [value]).id)
    )
    return graph


def chain(*sizes):
    """The kernel in which everything of a program is fused."""
    graph = program(*sizes)
    return lone_kernel(graph, configuration(graph, graph.slots, UNLIMITED).kernels[-1])


def test_sums_count_evaluations_with_those_of_recomputation():
    once, twice = kernel_sums(chain(100, 3)), kernel_sums(chain(100, 3, 2))
    assert once.estimate == pytest.approx(100 + 0.4 * 4 * 6400 + 0.1 * 2 * 6400)
    # The three tanh are evaluated twice; reverse, add and negate once.
    assert twice.estimate == pytest.approx(100 + 0.4 * (6 + 3) * 6400 + 0.1 * 2 * 6400)
    assert len(once.features) == len(twice.features)


@pytest.fixture
def data(tmp_path) -> KernelData:
    """Three families, whose kernels take the same time per evaluation; one kernel is in all."""
    random = np.random.default_rng(0)
    kernels: dict[str, MeasuredKernel] = {}
    programs = []
    for family in "abc":
        shapes = [(int(rows), int(random.integers(1, 9))) for rows in random.integers(99, 999, 40)]
        for number, (rows, length) in enumerate([(500, 3), *shapes]):
            file = tmp_path / f"{family}{number}.pb"
            file.write_bytes(written(program(rows, length)))
            module = ModuleTuningData.FromString(file.read_bytes())
            (identity,) = ProgramKernels(module).modules
            nanoseconds = PER_EVALUATION * rows * 64 * (length + 1)
            families = {family} | set(kernels[identity].families if identity in kernels else ())
            kernels[identity] = measured(identity, nanoseconds, frozenset(families))
            run = np.array([list(kernels).index(identity)])
            passes = np.full((2, 1), nanoseconds)
            programs.append(FusedProgram(file.stem, family, file, (run,), passes))
    return KernelData("0" * 64, tuple(kernels.values()), tuple(programs))


def measured(identity, nanoseconds, families):
    opcode, features, edges = np.zeros(3, int), np.zeros((3, 140)), np.zeros((0, 2), int)
    return MeasuredKernel(identity, opcode, features, edges, nanoseconds, families)


def written(graph):
    content = ModuleTuningData(module=graph.module)
    bits = (1 << len(graph.slots)) - 1
    size = (len(graph.slots) + 7) // 8
    content.runs.add().module_config.fusion_config.fused = bits.to_bytes(size, "little")
    return content.SerializeToString()


def test_a_family_is_predicted_by_trees_of_the_others(data):
    trees = KernelTrees(data)
    for family in "abc":
        quality = fusion_quality(data, trees.predict(data.seen([family])), [family])
        assert quality.kernels == 41
        assert quality.error < 0.2 and quality.tau > 0.8


def test_a_kernel_of_several_families_is_held_out_with_each(data):
    assert [len(data.seen(set("abc") - {family})) for family in "abc"] == [40, 40, 40]
    assert [len(data.unseen([family])) for family in "abc"] == [41, 41, 41]
    assert len(data.seen([])) == 3 * 40 + 1


def test_the_tables_have_a_row_for_each_family_and_the_mean(data):
    tables = fusion_tables(data, {"trees": held_out_predictions(data, KernelTrees(data).predict)})
    kernels, programs = tables.split("\n\n")
    for table in (kernels, programs):
        heading, _, *rows = [line.split("|")[1].strip() for line in table.splitlines()]
        assert [heading, *rows] == ["family", "a", "b", "c", "mean"]
