"""The cost model of TVM's MetaSchedule, in real searches."""

import json
import sys

import numpy as np
import pytest
from servers import run_empty_server, run_process, said_once

pytest.importorskip("tvm", reason="tvm is not installed")

import tvm
import tvm_programs as programs
from tvm.ir.utils import derived_object
from tvm.s_tir import meta_schedule as ms
from tvm.s_tir.meta_schedule.arg_info import ArgInfo
from tvm.s_tir.meta_schedule.builder.local_builder import default_build
from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback
from tvm.s_tir.meta_schedule.runner import RunnerResult

from hlorank import ArgumentError, Client
from hlorank.tuners import tvm_decisions
from hlorank.tuners.tvm import CostModel, add_known, report_database, task_of
from hlorank.tuners.tvm_decisions import Decisions
from hlorank.tuners.tvm_trace import COLUMNS, columns_of, kind_of


def spaces(mod=None, seed=1):
    """The design spaces of a module, with random decisions."""
    mod = programs.module() if mod is None else mod
    return programs.context(mod, seed).generate_design_space()


def candidates(schedules):
    return [ms.MeasureCandidate(each, []) for each in schedules]


def injected(schedules):
    """Times that fall with the innermost tile and rise with the choice of unrolling."""
    columns = np.array([columns_of(each.trace) for each in schedules])
    inner = columns[:, COLUMNS.index("axis0_level3")]
    choice = columns[:, COLUMNS.index("choice0")]
    return 1e-3 / (1 + np.log2(inner)) + 1e-4 * choice


def learn(model, schedules, mod=None, measured=None):
    """Tells a cost model what came of schedules."""
    context = programs.context(programs.module() if mod is None else mod)
    if measured is None:
        measured = [RunnerResult([float(each)], None) for each in injected(schedules)]
    model.update(context, candidates(schedules), measured)


def drawn(count, mod=None):
    """Random schedules with different columns."""
    found = {}
    for seed in range(1, 10 * count):
        for each in spaces(mod, seed):
            found.setdefault(columns_of(each.trace).tobytes(), each)
        if len(found) >= count:
            break
    return list(found.values())[:count]


def records(database, schedules, times):
    """Adds schedules of the module with their times."""
    workload = database.commit_workload(programs.module())
    for schedule, seconds in zip(schedules, times, strict=True):
        record = ms.database.TuningRecord(schedule.trace, workload, seconds, programs.TARGET, [])
        database.commit_tuning_record(record)
    return database


def traces(database):
    return [str(each.trace) for each in database.get_all_tuning_records()]


def adapter(client, target, decide=False):
    return (Decisions if decide else CostModel)(client, target)


TUNES, DECIDED, DEFAULT, MISFIT = 4, 0, None, b"[[1], 2]"
TIMES = [[3e-3], [1e-3], [2e-3], [1e10]]
_OTHER = records(ms.database.MemoryDatabase(), drawn(1), TIMES[:1])
OTHER = json.dumps(_OTHER.get_all_tuning_records()[0].as_json()).encode(), traces(_OTHER)


def tune(adapter, key, fails=False):
    """As in the tests of all adapters: of decisions with a search that measures four candidates."""
    if not isinstance(adapter, Decisions):
        context = programs.context(programs.module())
        adapter.predict(context, candidates(drawn(TUNES)))
        learn(adapter, drawn(TUNES))
        return TUNES, None
    tuned = []

    def search():
        if fails:
            raise RuntimeError("no compiler")
        tuned.append(records(ms.database.MemoryDatabase(), drawn(TUNES), TIMES))
        return tuned[0]

    def used():
        return adapter.database(programs.module(), programs.TARGET, search)

    if fails:
        with pytest.raises(RuntimeError, match="no compiler"):
            used()
        return None
    database = used()
    return TUNES * len(tuned), traces(database)


def test_a_simplified_trace_has_the_same_columns():
    for mod in (programs.module(), programs.module("softmax_mn")):
        for schedule in spaces(mod):
            columns = columns_of(schedule.trace)
            assert columns.shape == (len(COLUMNS),)
            np.testing.assert_array_equal(columns_of(schedule.trace.simplified(True)), columns)


def test_design_spaces_of_a_task_differ_in_their_columns():
    where = COLUMNS.index("written_at")
    written = {float(columns_of(each.trace)[where]) for each in spaces()}
    assert len(written) == len(spaces()) == 3


def test_products_of_all_sizes_are_of_one_kind():
    kinds = [kind_of(programs.module(size=size)) for size in (64, 128)]
    assert kinds == ["SSR", "SSR"]
    assert kind_of(programs.module("softmax_mn")) == "SR SS SR SS"


def test_a_search_reports_what_it_measured(client, tmp_path):
    database = programs.search(CostModel(client, "searched"), tmp_path)
    records = database.get_all_tuning_records()
    times = {round(float(each.run_secs[0]), 9) for each in records}
    assert len(records) == 8
    assert {round(each, 9) for each in seconds_of(client, "searched")} == times


def measured_of(client, target):
    return client.list_measurements(task_of(target, programs.module()).target).graphs


def seconds_of(client, target):
    return [time for each in measured_of(client, target) for time in each.seconds]


def test_a_server_without_a_store_learns_within_a_search(tmp_path):
    schedules = drawn(24)
    with run_process(f"--models={tmp_path}") as server, Client(server.address) as client:
        model = CostModel(client, "here", exploration=0)
        context = programs.context(programs.module())
        assert len(model.predict(context, candidates(schedules))) == 24
        learn(model, schedules[:16])
        scores = model.predict(context, candidates(schedules))
        assert np.corrcoef(np.log(scores), -np.log(injected(schedules)))[0, 1] > 0.8
        assert scores.max() == 1


@derived_object
class Kill(PyMeasureCallback):
    """Kills a server after the first measurements."""

    def __init__(self, server):
        super().__init__()
        self.server = server

    def apply(self, *_):
        self.server.kill()


@derived_object
class Counting(ms.cost_model.PyCostModel):
    """Counts what it learns from."""

    def __init__(self):
        super().__init__()
        self.learned = 0
        self.predicted = 0

    def load(self, path):
        raise NotImplementedError

    def save(self, path):
        raise NotImplementedError

    def update(self, context, candidates, results):
        self.learned += len(results)

    def predict(self, context, candidates):
        self.predicted += len(candidates)
        return np.ones(len(candidates))


def test_a_search_goes_on_after_one_warning_if_the_server_dies(tmp_path):
    fallback = Counting()
    with run_empty_server(tmp_path) as server, Client(server.address, timeout=1) as client:
        model = CostModel(client, "here", fallback=fallback)
        with said_once("go on"):
            database = programs.search(model, tmp_path, 12, callbacks=[Kill(server)])
    assert len(database.get_all_tuning_records()) == 12
    assert fallback.learned == 8, "what was measured before the last round"
    assert fallback.predicted > 0


def test_records_of_tvm_become_measurements_once(client, tmp_path):
    programs.search("random", tmp_path, database="json")
    paths = (str(tmp_path / f"database_{part}.json") for part in ("workload", "tuning_record"))
    database = ms.database.JSONDatabase(*paths)
    assert report_database(client, "imported", database) == 8
    imported = seconds_of(client, "imported")
    assert len(imported) == 8
    report_database(client, "imported", database)
    assert seconds_of(client, "imported") == imported


def test_an_error_decides_what_a_result_is_and_sentinels_are_no_times(client):
    schedules = drawn(6)
    measured = [
        RunnerResult([1e-3], None),
        RunnerResult([1e-9], "RPCRunner: the device is lost"),
        RunnerResult(None, "LocalBuilder: error in code generation"),
        RunnerResult([1e10], None),
        RunnerResult([1e9], None),
        RunnerResult([float("nan")], None),
    ]
    learn(CostModel(client, "errors"), schedules, measured=measured)
    (graph,) = measured_of(client, "errors")
    assert sorted(graph.seconds.tolist()) == [0] * 5 + [1e-3]
    assert graph.failures.count("crash") == 5


def test_a_record_that_was_never_measured_is_no_failure(client):
    database = records(ms.database.MemoryDatabase(), drawn(3), (None, [2e-3], [1e10]))
    assert report_database(client, "a part", database) == 2
    assert sorted(seconds_of(client, "a part")) == [0, 2e-3]


def test_a_fallback_is_checked_when_the_cost_model_is_made(monkeypatch):
    with Client("127.0.0.1:1") as client:
        with pytest.raises(ArgumentError, match="fallback is 'xgb'"):
            CostModel(client, "here", fallback="xgb")
        monkeypatch.setitem(sys.modules, "xgboost", None)
        with pytest.raises(ArgumentError, match="needs xgboost, which is not installed: pip"):
            CostModel(client, "here", fallback=ms.cost_model.XGBModel())


@pytest.mark.parametrize("name", ["matmul", "softmax_mn"])
def test_what_a_server_has_measured_becomes_records_that_compute_the_same(client, name):
    module = programs.module(name)
    schedules = drawn(12, module)
    times = np.random.default_rng(0).permutation(12) * 1e-4 + 1e-3
    measured = [RunnerResult([float(each)], None) for each in times]
    database = ms.database.MemoryDatabase()
    learn(CostModel(client, "known"), schedules, module, measured)
    assert add_known(client, "known", database, module, programs.TARGET, records=5) == 5
    assert add_known(client, "unknown", database, module, programs.TARGET) == 0
    # A search begins with the records of its workload.
    added = database.get_top_k(database.commit_workload(module), 100)
    by_time = [schedules[place] for place in np.argsort(times)[:5]]
    assert [float(each.run_secs[0]) for each in added] == pytest.approx(sorted(times)[:5])
    for record, schedule in zip(added, by_time, strict=True):
        np.testing.assert_array_equal(columns_of(record.trace), columns_of(schedule.trace))
        scheduled = record.as_measure_candidate().sch.mod
        np.testing.assert_allclose(output(scheduled), output(module), rtol=1e-4)


def output(module):
    """What a scheduled module computes."""
    built = default_build(module, programs.TARGET, None)
    built = built.jit() if hasattr(built, "jit") else built
    draw = np.random.default_rng(0)
    shapes = [[int(size) for size in each.shape] for each in ArgInfo.from_entry_func(module)]
    arrays = [draw.random(shape, np.float32) for shape in shapes]
    arguments = [tvm.runtime.tensor(each) for each in arrays]
    built["main"](*arguments)
    return arguments[-1].numpy()


def test_what_was_saved_is_loaded_and_reported(client, tmp_path):
    model = CostModel(client, "first server")
    learn(model, drawn(8))
    model.save(str(tmp_path / "saved"))
    with run_empty_server(tmp_path) as other, Client(other.address) as another:
        CostModel(another, "unused").load(str(tmp_path / "saved"))
        assert sorted(seconds_of(another, "first server")) == sorted(
            seconds_of(client, "first server")
        )


def test_other_tasks_say_what_to_expect(client):
    larger = programs.module(size=128)
    learn(CostModel(client, "tasks"), drawn(32, larger), larger)
    unseen = drawn(32)
    others = [task_of("tasks", larger).target]
    known = CostModel(client, "tasks", exploration=0, other_targets=others)
    scores = known.predict(programs.context(programs.module()), candidates(unseen))
    assert np.corrcoef(np.log(scores), -np.log(injected(unseen)))[0, 1] > 0.5


def test_the_best_record_of_a_search_is_decided_and_compiled(client):
    module = programs.module()
    found = records(ms.database.MemoryDatabase(), drawn(TUNES), TIMES)
    used = Decisions(client, "decided").database(module, programs.TARGET, lambda: found)
    (decision,) = client.list_decisions("tvm", "decided").decisions
    best = found.query_tuning_record(module, programs.TARGET, "main")
    assert traces(used) == [str(best.trace)]
    assert decision.evidence.seconds == pytest.approx(1e-3)
    assert ms.tir_integration.compile_tir(used, module, programs.TARGET) is not None


def test_the_record_of_another_program_is_none():
    module = programs.module()
    insts_and_decisions, *others = json.loads(OTHER[0])
    insts, decided = insts_and_decisions
    misfits = [
        None,
        [],
        ["not a trace", *others],
        [[insts[1:], decided], *others],
        [[insts, [[0, [7, 7, 7, 7]]]], *others],
    ]
    for misfit in misfits:
        assert tvm_decisions._database(module, json.dumps(misfit).encode()) is None, misfit


def test_a_search_that_finds_nothing_decides_nothing(client):
    decisions = Decisions(client, "nothing")
    empty = ms.database.MemoryDatabase()
    assert decisions.database(programs.module(), programs.TARGET, lambda: empty) is empty
    assert not client.list_decisions("tvm", "nothing").decisions
