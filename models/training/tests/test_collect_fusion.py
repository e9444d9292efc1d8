import os
from functools import partial

import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.atomic_files import read_json  # noqa: E402
from hlorank_tune.measure.fusion.graph import FusionGraph  # noqa: E402
from hlorank_tune.measure.rounds import Protocol  # noqa: E402
from hlorank_tune.measure.schema import HloModuleProto, ModuleTuningData, TuningData  # noqa: E402
from hlorank_tune.measure.workers import Worker  # noqa: E402
from jaxlib import _hlo  # noqa: E402

from hlorank_training.measuring import collect_fusion as module  # noqa: E402
from hlorank_training.measuring import fused_programs  # noqa: E402
from hlorank_training.measuring import light_programs as light  # noqa: E402
from hlorank_training.measuring.collect_fusion import (  # noqa: E402
    WORKER,
    collect_fusion,
    time_alone,
)
from hlorank_training.measuring.fused_programs import FusionLimits, measure_program  # noqa: E402
from hlorank_training.measuring.kernel_times import TIMES, KernelTimes, ProgramKernels, label  # noqa: E402
from hlorank_training.measuring.zoo import Network  # noqa: E402

AT_ONCE = Protocol(warmups=0, rounds=2, seconds=0, other_load=99, tries=0, clock="process")
LIMITS = FusionLimits(random=2, near=1)
SMALL = Network("small", "stencil", partial(light.wave, steps=1), ((40, 24),))

DYING = """HloModule dying
body {
  p = f32[32,64]{1,0} parameter(0)
  n = f32[32,64]{1,0} negate(p)
  i = s32[4]{0} iota(), iota_dimension=0
  ROOT g = f32[4,64]{1,0} gather(n, i), offset_dims={1}, collapsed_slice_dims={0},
    start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}
}
ENTRY main {
  p = f32[32,64]{1,0} parameter(0)
  ROOT f = f32[4,64]{1,0} fusion(p), kind=kLoop, calls=body
}
"""
"""XLA:CPU aborts on a gather in a loop fusion."""


@pytest.fixture(scope="module", autouse=True)
def only_the_small_program():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "fusion_programs", lambda: [SMALL])
        yield


collect = partial(collect_fusion, minutes=5, protocol=AT_ONCE, limits=LIMITS)


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fusion")
    collect(folder)
    return folder


def program(folder) -> ModuleTuningData:
    return ModuleTuningData.FromString((folder / "programs/small.pb").read_bytes())


def test_a_program_becomes_bits_with_times_and_a_record(collected):
    data = program(collected)
    record = read_json(collected / "programs/small.json")
    graph = FusionGraph(data.module)
    assert list(data.config_index_to_node) == graph.slot_numbers
    sizes = {len(run.module_config.fusion_config.fused) for run in data.runs}
    assert sizes == {(len(graph.slots) + 7) // 8}
    assert [run.is_default for run in data.runs] == [True] + [False] * (len(data.runs) - 1)
    assert all(run.profile.compute_time_ns > 0 for run in data.runs)
    assert record["kinds"][:3] == ["compiler", "greedy", "unfused"]
    assert len(record["kinds"]) == len(record["first_pass"]) == len(data.runs) >= 5
    assert record["refused"] == []
    assert record["compiler_default_nanoseconds"] > record["call_nanoseconds"] > 0


def test_every_kernel_of_a_program_is_timed_once_and_short_ones_are_dropped(collected):
    record = read_json(collected / "kernels/small.json")
    data = TuningData.FromString((collected / "kernels/small.pb").read_bytes())
    kernels = record["kernels"]
    assert len({kernel["digest"] for kernel in kernels}) == len(kernels)
    assert {n for run in record["configurations"] for n in run} == set(range(len(kernels)))
    assert not any("error" in kernel for kernel in kernels)
    timed = [kernel for kernel in kernels if label(kernel) is not None]
    assert [kernel.fingerprint for kernel in data.modules] == [
        int(kernel["digest"][:16], 16) for kernel in timed
    ]
    times = [kernel.runs[0].profile.compute_time_ns for kernel in data.modules]
    assert min(times) >= 50


def test_what_is_collected_is_not_collected_again(collected, monkeypatch):
    def fail(*_):
        raise AssertionError("measured again")

    before = {path: path.stat().st_mtime_ns for path in collected.glob("*/small.*")}
    monkeypatch.setattr(module, "measure_program", fail)
    monkeypatch.setattr(module, "time_alone", fail)
    collect(collected)
    assert len(before) == 4
    assert {path: path.stat().st_mtime_ns for path in collected.glob("*/small.*")} == before


def test_a_stop_between_two_kernels_continues_with_the_next_one(collected, tmp_path, monkeypatch):
    (tmp_path / "kernels").mkdir()
    lines = (collected / "kernels" / TIMES).read_text(encoding="utf-8").splitlines(True)
    cut_off = "".join(lines[:-2]) + lines[-2][:20]
    (tmp_path / "kernels" / TIMES).write_text(cut_off + "\n", encoding="utf-8")
    os.symlink(collected / "programs", tmp_path / "programs")
    asked = []
    send = Worker.send
    monkeypatch.setattr(Worker, "send", lambda self, it: (asked.append(it), send(self, it)))
    collect(tmp_path)
    assert len(asked) == 2
    first, second = (read_json(each / "kernels/small.json") for each in (collected, tmp_path))
    assert first["configurations"] == second["configurations"]
    assert first["kernels"][:-2] == second["kernels"][:-2]


def test_nothing_is_begun_when_the_time_is_over(tmp_path):
    collect(tmp_path, minutes=-1)
    assert not list(tmp_path.glob("*/small.*"))


def dying():
    text = _hlo.hlo_module_from_text(DYING).as_serialized_hlo_module_proto()
    return HloModuleProto.FromString(text)


def test_a_kernel_on_which_the_compiler_dies_is_an_error_and_the_next_is_timed(collected, tmp_path):
    times = KernelTimes(tmp_path / TIMES)
    identity, kernel = next(iter(ProgramKernels(program(collected)).modules.items()))
    with Worker(WORKER) as worker:
        times.add("dying", time_alone(dying(), worker))
        times.add(identity, time_alone(kernel, worker))
    again = KernelTimes(tmp_path / TIMES).records
    assert again["dying"]["error"].startswith("the compiler crashed with SIG")
    assert label(again["dying"]) is None
    assert min(again[identity]["hot"]) > 0


def test_configurations_that_end_the_compiler_or_differ_are_rows_and_the_rest_is_measured(
    monkeypatch,
):
    made = []

    def written(graph, kernels):
        made.append(fused_program(graph, kernels))
        if len(made) == 3:
            return dying()
        for computation in made[-1].computations if len(made) == 4 else ():
            for instruction in computation.instructions:
                if instruction.opcode == "multiply":
                    instruction.opcode = "add"
        return made[-1]

    fused_program = fused_programs.fused_program
    monkeypatch.setattr(fused_programs, "fused_program", written)
    measured = measure_program(SMALL, AT_ONCE, LIMITS)
    (unfused, died), (random, differs) = measured.refused
    assert (unfused, random) == ("unfused", "random")
    assert "crashed with SIG" in died and "results differ by" in differs
    assert [drawn.kind for drawn in measured.drawn][:3] == ["compiler", "greedy", "random"]
    assert measured.timing.first.shape[1] == len(measured.drawn)
