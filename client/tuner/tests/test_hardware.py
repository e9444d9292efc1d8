import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hlorank_tune.xla import hardware as own
from hlorank_tune.xla.hardware import Hardware, HardwareError, Timeouts
from hlorank_tune.xla.worker import Setting

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

from programs import HASTE  # noqa: E402
from servers import DATA  # noqa: E402

from hlorank_tune.measure.constrain import configurable_nodes, constrained  # noqa: E402
from hlorank_tune.measure.execute import flat_arguments, lower  # noqa: E402
from hlorank_tune.measure.fusion.compilation import Compilation  # noqa: E402
from hlorank_tune.measure.schema import HloModuleProto  # noqa: E402

ARGUMENTS = [np.arange(48, dtype=np.float32).reshape(6, 8) / 48, np.ones((8, 5), np.float32)]
HURRY = Timeouts(start=60, compile=20, run=2)


def compilation(module):
    return Compilation(module.SerializeToString(), "")


def module(function, *arguments):
    return compilation(lower("program", function, arguments or ARGUMENTS))


def spin(x, y):
    """Never ends, which XLA cannot know."""
    return jax.lax.while_loop(lambda v: (v > -1).all(), lambda v: jnp.abs(v) + y.sum(), x) @ y


GOOD = module(lambda x, y: x @ y)
SAME = module(lambda x, y: (y.T @ x.T).T)
OTHER = module(lambda x, y: x @ y + 1)
OTHER_SHAPE = module(lambda x, y: (x @ y).T)
MORE = module(lambda x, y: (x @ y, x))
NOT_A_NUMBER = module(lambda x, y: jnp.log(x @ y - 100))
HANGS = module(spin)


def unknown_call():
    """What XLA refuses to compile."""
    edited = HloModuleProto.FromString(GOOD.module)
    dot = next(i for i in edited.computations[0].instructions if i.opcode == "dot")
    dot.opcode, dot.custom_call_target = "custom-call", "no_such_function"
    return compilation(edited)


def setting(reference=GOOD, arguments=ARGUMENTS):
    return Setting(reference, arguments, tolerance=1e-3, slow=1e9)


@pytest.fixture(scope="module")
def machine(tmp_path_factory):
    with Hardware(setting(), tmp_path_factory.mktemp("machine") / "log", HURRY) as hardware:
        yield hardware


def statuses(outcomes):
    return [outcome.status for outcome in outcomes]


def test_programs_that_do_the_same_are_measured_beside_the_default(machine):
    outcomes = machine.measure([GOOD, SAME], HASTE)
    assert statuses(outcomes) == ["measured"] * 2
    for outcome in outcomes:
        assert outcome.nanoseconds > 0 and outcome.reference > 0 and outcome.noise >= 0
        assert 1 / 20 < outcome.ratio < 20
    assert outcomes[0].reference == outcomes[1].reference


def test_a_constrained_program_is_right_in_any_layout(machine):
    parsed = HloModuleProto.FromString(GOOD.module)
    nodes = configurable_nodes(parsed)
    entries = [((0, 1), (0, 1), (1, 0)), ((1, 0), (), (0, 1)), ((), (), ())]
    modules = [compilation(constrained(parsed, nodes, [entry])) for entry in entries]
    assert statuses(machine.measure(modules, HASTE)) == ["measured"] * 3


@pytest.mark.parametrize(
    ("bad", "status", "words"),
    [
        (unknown_call(), "compile failed", "custom-call"),
        (Compilation(b"\xff", ""), "compile failed", ""),
        (OTHER, "wrong result", "differ by"),
        (OTHER_SHAPE, "wrong result", "(5, 6)"),
        (MORE, "wrong result", "(6, 8)"),
        (NOT_A_NUMBER, "wrong result", "differ by nan"),
        (module(lambda x: x + x, ARGUMENTS[0]), "run failed", ""),
    ],
    ids=["compile", "no module", "other", "shape", "results", "not a number", "arguments"],
)
def test_of_a_batch_the_one_that_fails_is_told_and_the_others_are_measured(
    machine, bad, status, words
):
    machine.measure([GOOD], HASTE)
    process = machine.worker._process
    outcomes = machine.measure([GOOD, bad, SAME], HASTE)
    assert statuses(outcomes) == ["measured", status, "measured"]
    assert outcomes[1].message and words in outcomes[1].message
    assert "\n" not in outcomes[1].message and np.isinf(outcomes[1].ratio)
    assert machine.worker._process is process, "for that no process is started anew"


def test_a_program_that_makes_xla_abort_is_told_and_the_others_are_measured(machine):
    # Compiled again, a module after optimization breaks what XLA takes for granted.
    content = (DATA / "hlo/cnn_train.cpu_after_opt.hlo_module.pb").read_bytes()
    aborts = Compilation(content, "")
    outcomes = machine.measure([GOOD, aborts, SAME], HASTE)
    assert statuses(outcomes) == ["measured", "crashed", "measured"]
    assert outcomes[1].message.startswith("Aborted: ") and "Check failed" in outcomes[1].message


def test_a_program_that_hangs_is_ended_and_the_others_are_measured(machine):
    outcomes = machine.measure([GOOD, HANGS, SAME], HASTE)
    assert statuses(outcomes) == ["measured", "timed out", "measured"]
    assert outcomes[1].message == "after 2 s"


def test_a_program_that_is_much_slower_is_not_measured_in_rounds(tmp_path):
    slow = Setting(GOOD, ARGUMENTS, tolerance=1e-3, slow=1e-9)
    with Hardware(slow, tmp_path / "log", HURRY) as hardware:
        own, other = hardware.measure([GOOD, SAME], HASTE)
    assert other.status == "slow" and np.isfinite(other.ratio)
    assert own.status == "measured", "the program itself is never slow"


def kill_when(monkeypatch, machine, number, condition):
    """Sends the process a signal after an event of a batch."""

    class Watched(own._Batch):
        def take(self, event):
            super().take(event)
            if condition(self, event):
                os.kill(machine.worker._process.pid, number)

    monkeypatch.setattr(own, "_Batch", Watched)


def test_a_program_that_crashes_is_told_and_the_others_are_measured(machine, monkeypatch):
    def runs(batch, event):
        is_first_run = isinstance(event, own.Started) and event.program in batch._compiled
        return is_first_run and batch.modules[event.program] == HANGS

    kill_when(monkeypatch, machine, signal.SIGSEGV, runs)
    outcomes = machine.measure([GOOD, HANGS, SAME], HASTE)
    assert statuses(outcomes) == ["measured", "crashed", "measured"]
    assert outcomes[1].message.startswith("Segmentation fault")


def test_a_process_that_is_killed_among_many_programs_blames_none_of_them(machine, monkeypatch):
    machine.measure([GOOD], HASTE)
    before = machine.worker._process

    def is_the_last(batch, event):
        return (
            machine.worker._process is before
            and isinstance(event, own.Ended)
            and event.program == 1
        )

    kill_when(monkeypatch, machine, signal.SIGKILL, is_the_last)
    assert statuses(machine.measure([GOOD, SAME], HASTE)) == ["measured"] * 2
    assert before.wait(10) == -signal.SIGKILL


def test_a_process_that_ended_between_two_batches_is_started_anew(machine):
    machine.measure([GOOD], HASTE)
    before = machine.worker._process
    before.kill()
    before.wait()
    assert statuses(machine.measure([GOOD], HASTE)) == ["measured"]
    assert machine.worker._process is not before


@pytest.mark.parametrize(
    ("reference", "arguments", "timeouts", "words"),
    [
        (unknown_call(), ARGUMENTS, HURRY, "custom-call"),
        (GOOD, ARGUMENTS[:1], HURRY, "argument"),
        (HANGS, ARGUMENTS, Timeouts(start=6), "timeout after 6 s"),
    ],
    ids=["compile", "arguments", "hangs"],
)
def test_a_default_that_does_not_run_is_an_error_that_says_why(
    tmp_path, reference, arguments, timeouts, words
):
    (tmp_path / "log").write_text("what an earlier process said\n")
    hardware = Hardware(setting(reference, arguments), tmp_path / "log", timeouts)
    with hardware, pytest.raises(HardwareError, match="does not run as it is") as failed:
        hardware.measure([GOOD], HASTE)
    assert words in str(failed.value) and "earlier" not in str(failed.value)
    assert hardware.worker._process is None


TYPES = ["bfloat16", "float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


def test_arguments_and_results_are_of_any_type(tmp_path):
    with jax.enable_x64(True):
        arguments = [jnp.asarray([0, 1, 1], jnp.dtype(name)) for name in TYPES]
        arguments += [jnp.asarray(2.5, "float64"), jnp.asarray([1j], "complex64")]
        plain = [np.asarray(argument) for argument in arguments]
        same = module(lambda *given: given, *arguments)
        other = module(lambda *given: (*given[:-1], given[-1].real + 0j), *arguments)
        again = module(
            lambda *given: tuple(g + 0 if g.dtype != bool else g for g in given), *arguments
        )
    with Hardware(setting(same, plain), tmp_path / "log", HURRY) as hardware:
        outcomes = hardware.measure([again, other], HASTE)
    assert statuses(outcomes) == ["measured", "wrong result"]


def test_what_is_not_a_number_in_the_default_has_to_be_so_in_every_program(tmp_path):
    def of(shift):
        return module(lambda x, y: (jnp.log(x @ y - 1), 1 / (x * 0), x + shift))

    with Hardware(setting(of(0)), tmp_path / "log", HURRY) as hardware:
        assert statuses(hardware.measure([of(0), of(1), GOOD], HASTE)) == [
            "measured",
            "wrong result",
            "wrong result",
        ]


def test_python_numbers_and_trees_are_arguments():
    assert [a.dtype.name for a in flat_arguments([{"a": 1.5, "b": (2, True)}])] == [
        "float32",
        "int32",
        "bool",
    ]


def descriptors():
    return sorted(os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.exists())


def test_nothing_is_left_behind(tmp_path):
    before = descriptors()
    hardware = Hardware(setting(), tmp_path / "log", HURRY)
    with hardware:
        hardware.measure([GOOD], HASTE)
        process = hardware.worker._process
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        hardware.measure([GOOD], HASTE)
        last = hardware.worker._process
    assert process.returncode is not None and last.returncode is not None
    assert descriptors() == before


PARENT = """
import sys
sys.path[:0] = {paths!r}
from test_hardware import HANGS, HASTE, Hardware, Timeouts, Path, setting
hardware = Hardware(setting(), Path({log!r}), Timeouts(compile=600, run=600))
with hardware:
    hardware._start()
    print(hardware.worker._process.pid, flush=True)
    hardware.measure([HANGS], HASTE)
"""


def is_alive(pid):
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_process_ends_with_the_one_that_started_it(tmp_path, how):
    script = PARENT.format(paths=sys.path, log=str(tmp_path / "log"))
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as parent:
        worker = int(parent.stdout.readline())
        # Until the program that never ends is running.
        time.sleep(1.5)
        assert is_alive(worker)
        parent.send_signal(how)
        parent.wait(10)
    end = time.monotonic() + 10
    while is_alive(worker) and time.monotonic() < end:
        time.sleep(0.05)
    assert not is_alive(worker)


def test_the_process_reports_what_it_does(machine, monkeypatch):
    busy = replace(HASTE, tries=2, other_load=-1.0)
    phases = []
    machine.measure([GOOD, SAME], busy, report=phases.append)
    kinds = list(dict.fromkeys(phase.partition(":")[0] for phase in phases))
    expected = ["compiling", "checking results", "measuring", "waiting for a quiet machine"]
    assert sorted(kinds, key=expected.index) == kinds == expected
    assert any("2 candidates" in phase for phase in phases)


def test_without_time_a_measurement_ends_with_a_round_of_each_pass(machine):
    patient = replace(HASTE, rounds=10**6, most_rounds=10**6, tries=10**6, other_load=-1.0)
    outcomes = machine.measure([GOOD, SAME], patient, seconds=0.0)
    assert statuses(outcomes) == ["measured"] * 2
