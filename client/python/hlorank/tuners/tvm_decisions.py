"""One schedule of TVM's MetaSchedule for all processes."""

import json
from collections.abc import Callable
from statistics import fmean
from typing import Any

from tvm.ir import IRModule
from tvm.s_tir import Schedule
from tvm.s_tir.meta_schedule.database import Database, MemoryDatabase, TuningRecord
from tvm.s_tir.meta_schedule.utils import shash2hex
from tvm.target import Target

from hlorank import Client, Evidence
from hlorank.tuners.decider import Decider, key_of


class Decisions(Decider):
    """Has all processes compile a task with the same record.

    >>> decisions = Decisions(Client("127.0.0.1:7070"), "EPYC 9R14, LLVM 19, 1 core")
    >>> tune = lambda: tune_tir(module, target, "tuned", 64)
    >>> schedule = compile_tir(decisions.database(module, target, tune), module, target)

    Args:
        client: A client of a server that keeps measurements.
        target: What decisions are for: processor, compiler and number of threads.
        options: ``on_away``, ``group``, ``timeout`` and ``fallback`` of a ``Decider``.
    """

    namespace = "tvm"

    def __init__(self, client: Client, target: str, **options: Any):
        super().__init__(client, target, decide=True, **options)

    def database(
        self, module: IRModule, compiled_for: Target, tune: Callable[[], Database]
    ) -> Database:
        """Returns a database whose only record is the one that everybody uses.

        Args:
            module: The task, whose function is ``main``.
            compiled_for: What TVM compiles for.
            tune: Searches, and returns TVM's database, from which the best record is proposed. It
                is called unless the task is decided. Its database is returned if nothing is.
        """
        key = key_of(shash2hex(module), str(compiled_for))

        def read(value: bytes) -> Database | None:
            return _database(module, value)

        with self.giving_back():
            state, decided = self.decided(key, read)
            if decided is not None:
                return decided
            own = tune()
            best = own.query_tuning_record(module, compiled_for, "main")
            if state != "claimed":
                return own
            if best is None or not best.run_secs:
                return self.agree(key, None, None, read) or own
            seconds = [float(each) for each in best.run_secs]
            evidence = Evidence(fmean(seconds), len(seconds), len(own))
            value = json.dumps(best.as_json()).encode()
            return self.agree(key, own, value, read, evidence) or own


def _database(module: IRModule, value: bytes) -> Database | None:
    """Returns a database with a decided record; None if it does not fit the module."""
    database = MemoryDatabase()
    try:
        record = TuningRecord.from_json(json.loads(value), database.commit_workload(module))
        record.trace.apply_to_schedule(Schedule(module), remove_postproc=False)
    except Exception:  # TVM raises errors of many kinds for the record of another program
        return None
    database.commit_tuning_record(record)
    return database
