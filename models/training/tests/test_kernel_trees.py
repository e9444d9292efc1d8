import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from hlorank.measure.atomic_files import write_json
from hlorank.measure.fusion.builder import Builder
from hlorank.measure.fusion.graph import FusionGraph
from hlorank.measure.fusion.kernels import configuration
from hlorank.measure.fusion.limits import UNLIMITED
from hlorank.measure.fusion.write import lone_kernel
from hlorank.measure.schema import ShapeProto, TuningData

from hlorank_training.judging.kernel_sums import kernel_sums
from hlorank_training.judging.kernel_trees import _kernels, judge_trees

PER_EVALUATION = 0.8


def chain(rows, length, users=1):
    """A kernel of some tanh in a row, of which the last is read at several places."""
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
    return lone_kernel(graph, configuration(graph, graph.slots, UNLIMITED).kernels[-1])


def test_sums_count_evaluations_with_those_of_recomputation():
    once, twice = kernel_sums(chain(100, 3)), kernel_sums(chain(100, 3, users=2))
    assert once.estimate == pytest.approx(100 + 0.4 * 4 * 6400 + 0.1 * 2 * 6400)
    # The three tanh are evaluated twice; reverse, add and negate once.
    assert twice.estimate == pytest.approx(100 + 0.4 * (6 + 3) * 6400 + 0.1 * 2 * 6400)
    assert len(once.features) == len(twice.features)


@pytest.fixture
def data(tmp_path) -> Path:
    """Three families, whose kernels take the same time per evaluation."""
    random = np.random.default_rng(0)
    for family in "abc":
        shapes = [(int(rows), int(random.integers(1, 9))) for rows in random.integers(99, 999, 40)]
        # Every program has this kernel.
        write(tmp_path, family, [(500, 3), *shapes])
    return tmp_path


def write(folder, family, shapes):
    data, records = TuningData(), []
    nanoseconds = [PER_EVALUATION * rows * 64 * (length + 1) for rows, length in shapes]
    for shape, taken in zip(shapes, nanoseconds, strict=True):
        fingerprint = hash(shape) % 2**60
        kernel = data.modules.add(fingerprint=fingerprint, module=chain(*shape))
        kernel.runs.add().profile.compute_time_ns = round(taken)
        records.append({"digest": f"{fingerprint:016x}", "hot": [taken, taken]})
    records.append({"digest": "f" * 16, "error": "the compiler crashed with SIGABRT"})
    runs = [list(range(n, n + 5)) for n in range(30)] + [[0, len(shapes)]]
    times = [500 + sum(nanoseconds[n] for n in run) for run in runs[:-1]] + [1.0]
    described = {"name": family, "family": family, "kernels": records, "configurations": runs}
    write_json(folder / "kernels" / f"{family}.json", described)
    (folder / "kernels" / f"{family}.pb").write_bytes(data.SerializeToString())
    program = {"call_nanoseconds": 500, "first_pass": times, "second_pass": times}
    write_json(folder / "programs" / f"{family}.json", program)


def test_a_family_is_judged_by_trees_of_the_others(data):
    table = judge_trees(data)
    print(table)
    lines = [line for line in table.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rows = {first: rest for first, *rest in cells}
    assert [rows[family][0] for family in "abc"] == ["41", "41", "41"]
    for family in "abc":
        kernels, programs = rows[family][1:4], rows[family][4:]
        assert int(kernels[0].rstrip("%")) < 20 and float(kernels[2]) > 0.8
        assert programs[0] == "1", "the configuration with a kernel without a time is left out"
        assert int(programs[1].rstrip("%")) < 20 and float(programs[2]) > 0.6


def test_a_kernel_of_several_families_is_held_out_with_each(data):
    names = ["a", "b", "c"]
    records = {
        name: json.loads((data / "kernels" / f"{name}.json").read_text(encoding="utf-8"))
        for name in names
    }
    families = _kernels(data, records).families
    assert families.count({"a", "b", "c"}) == 1
    assert len(families) == 3 * 40 + 1
