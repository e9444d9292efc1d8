"""A process that measures programs: what becomes of those that fail, and of the others."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fake_programs import Words

from hlorank_tune.measure.host import measure_programs
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker, WorkerError
from hlorank_tune.subject import outcomes_of

HASTE = Protocol(warmups=1, rounds=2, most_rounds=3, seconds=0.005, stretch_seconds=0.01, tries=0)


@pytest.fixture(scope="module")
def worker(tmp_path_factory):
    with Worker("hlorank_tune.measure.host", log=tmp_path_factory.mktemp("host") / "log") as worker:
        yield worker


def measured(worker, *programs, loader=None, protocol=HASTE, **more):
    words = [program.encode() for program in programs]
    return measure_programs(worker, loader or Words(), words, protocol, **more)


def test_programs_that_do_the_same_have_run_times(worker):
    found = measured(worker, "one", "other")
    assert found.errors == ["", ""] and found.failures == [None, None]
    assert (found.nanoseconds == np.minimum(found.first, found.second)).all()
    assert (found.nanoseconds > 100_000).all() and (found.noise >= 0).all()
    assert 4 <= found.rounds <= 6 and found.repeated == 0
    own, other = outcomes_of(found)
    assert own.status == "measured" and own.ratio == 1 and own.reference == other.reference


@pytest.mark.parametrize(
    ("program", "failure", "status", "words"),
    [
        ("refused", "compile", "compile failed", "no such word"),
        ("raises", "crash", "crashed", "it ends"),
        ("harness", None, "failed", "a mistake"),
        ("text", None, "failed", "the results are not checked"),
        ("wrong", "wrong_result", "wrong result", "differ by 1.0e+00"),
        ("other shape", "wrong_result", "wrong result", "(2,), expected (1,)"),
        ("nan", "wrong_result", "wrong result", "differ by nan"),
        ("SIGSEGV", "crash", "crashed", "crashed with SIGSEGV: Check failed"),
        ("SIGABRT", "crash", "crashed", "crashed with SIGABRT"),
        ("SIGKILL", None, "failed", "crashed with SIGKILL"),
        ("SIGTERM", None, "failed", "crashed with SIGTERM"),
        ("exits", None, "failed", "crashed with exit code 1"),
        ("late", None, "failed", "crashed with SIGSEGV"),
    ],
)
def test_the_program_that_fails_is_named_and_the_others_are_measured(
    worker, program, failure, status, words
):
    found = measured(worker, "one", program, "other")
    assert found.errors[::2] == ["", ""] and words in found.errors[1]
    assert "\n" not in found.errors[1] and found.failures == [None, failure, None]
    assert np.isfinite(found.nanoseconds).tolist() == [True, False, True]
    _, failed, other = outcomes_of(found)
    assert (failed.status, failed.failure, failed.message) == (status, failure, found.errors[1])
    assert np.isinf(failed.ratio) and other.status == "measured"


def test_a_program_that_hangs_is_ended_and_the_others_are_measured(worker):
    measured(worker, "one")
    # The process starts anew after the hang, within this time.
    found = measured(worker, "one", "other", "hangs", loader=Words(patience=5.0))
    assert found.errors == ["", "", "timed out after 5 s"]
    assert found.failures[2] == "timeout"


def test_the_end_of_the_time_says_nothing_of_a_program(worker, monkeypatch):
    monkeypatch.setattr("hlorank_tune.measure.host._GRACE_SECONDS", 1.0)
    found = measured(worker, "one", "hangs", seconds=0.0)
    assert found.errors[1].startswith("timed out") and found.failures == [None, None]


def test_without_time_a_measurement_ends_with_a_round_of_each_pass(worker):
    patient = replace(HASTE, rounds=10**6, most_rounds=10**6, tries=10**6, other_load=-1.0)
    assert measured(worker, "one", "other", protocol=patient, seconds=0.0).rounds == 2


def test_a_program_that_is_much_slower_runs_a_few_times(worker):
    long = replace(HASTE, rounds=40, most_rounds=40)
    found = measured(worker, "one", "slow", protocol=long)
    assert found.errors == ["", ""] and found.nanoseconds[1] > 10 * found.nanoseconds[0]
    assert found.rounds == 80, "which are those of the others"


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("refused", "failed: no such word"),
        ("differs", "failed: its results differ from run to run"),
        ("SIGSEGV", "crashed with SIGSEGV"),
        ("late", "crashed with SIGSEGV"),
        ("hangs", "timed out after 6 s"),
    ],
)
def test_a_reference_that_fails_is_an_error_of_the_whole(worker, reference, words):
    worker.log.write_text("what an earlier process said\n")
    with pytest.raises(WorkerError, match=words) as failed:
        measured(worker, reference, loader=Words(patience=3.0))
    assert "earlier" not in str(failed.value)
    assert measured(worker, "one").errors == [""], "the process starts again"


def test_a_process_that_ended_between_two_measurements_starts_again(worker):
    measured(worker, "one")
    before = worker._process
    before.kill()
    before.wait()
    assert measured(worker, "one").errors == [""] and worker._process is not before


def test_the_phases_are_reported(worker):
    phases = []
    busy = replace(HASTE, tries=2, other_load=-1.0)
    measured(worker, "one", "other", protocol=busy, report=phases.append)
    kinds = list(dict.fromkeys(phase.partition(":")[0] for phase in phases))
    assert kinds == ["compiling and checking", "measuring", "waiting for a quiet machine"]
    assert any("2 programs" in phase for phase in phases)


def descriptors():
    return sorted(os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists())


def test_nothing_is_left_behind(tmp_path):
    before = descriptors()
    with Worker("hlorank_tune.measure.host", log=tmp_path / "log") as worker:
        measured(worker, "one", "SIGKILL")
        process = worker._process
    assert process.returncode is not None and descriptors() == before


PARENT = """
import sys
sys.path[:0] = {paths!r}
from test_host import Worker, measured
with Worker("hlorank_tune.measure.host") as worker:
    measured(worker, "one")
    print(worker._process.pid, flush=True)
    measured(worker, "one", "hangs")
"""


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_the_one_that_started_it(how):
    command = [sys.executable, "-c", PARENT.format(paths=sys.path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        worker = int(parent.stdout.readline())
        assert is_alive(worker)
        parent.send_signal(how)
        parent.wait(60)
    end = time.monotonic() + 60
    while is_alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(worker)
