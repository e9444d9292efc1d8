"""XLA's programs in the process that measures them."""

import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")
jnp = jax.numpy

from programs import HASTE  # noqa: E402
from servers import DATA  # noqa: E402

from hlorank_tune.measure.execute import lower  # noqa: E402
from hlorank_tune.measure.fusion.compilation import Compilation, Compiling  # noqa: E402
from hlorank_tune.measure.host import measure_programs  # noqa: E402
from hlorank_tune.measure.schema import HloModuleProto  # noqa: E402
from hlorank_tune.measure.workers import Worker  # noqa: E402

ARGUMENTS = [np.arange(48, dtype=np.float32).reshape(6, 8) / 48, np.ones((8, 5), np.float32)]


def compilation(module):
    return Compilation(module.SerializeToString(), "")


def module(function, *arguments):
    return compilation(lower("program", function, arguments or ARGUMENTS))


GOOD = module(lambda x, y: x @ y)
ABORTS = Compilation((DATA / "hlo/cnn_train.cpu_after_opt.hlo_module.pb").read_bytes(), "")
"""Compiled again, a module after optimization breaks what XLA takes for granted."""


def unknown_call():
    """What XLA refuses to compile."""
    edited = HloModuleProto.FromString(GOOD.module)
    dot = next(i for i in edited.computations[0].instructions if i.opcode == "dot")
    dot.opcode, dot.custom_call_target = "custom-call", "no_such_function"
    return compilation(edited)


def measured(worker, *programs, arguments=ARGUMENTS):
    return measure_programs(worker, Compiling(arguments), programs, HASTE)


@pytest.fixture
def worker(tmp_path):
    with Worker("hlorank_tune.measure.host", log=tmp_path / "log") as worker:
        yield worker


def test_each_program_that_fails_says_why_and_the_others_are_measured(worker):
    bad = {
        "custom-call": (unknown_call(), "compile"),
        "": (Compilation(b"\xff", ""), None),
        "(5, 6)": (module(lambda x, y: (x @ y).T), "wrong_result"),
        "crashed with SIGABRT": (ABORTS, "crash"),
    }
    same = module(lambda x, y: (y.T @ x.T).T)
    found = measured(worker, GOOD, *(program for program, _ in bad.values()), same)
    for error, words in zip(found.errors[1:-1], bad, strict=True):
        assert error and words in error
    assert "Check failed" in found.errors[4]
    assert found.failures[1:-1] == [failure for _, failure in bad.values()]
    assert np.isfinite(found.nanoseconds[[0, -1]]).all()


TYPES = ["bfloat16", "float16", "float32", "float64", "int8", "int32", "int64", "uint8", "bool"]


def test_arguments_and_results_are_of_any_type(worker):
    with jax.enable_x64(True):
        arguments = [jnp.asarray([0, 1, 1], jnp.dtype(name)) for name in TYPES]
        arguments += [jnp.asarray(2.5, "float64"), jnp.asarray([1j], "complex64")]
        plain = [np.asarray(argument) for argument in arguments]
        same = module(lambda *given: given, *arguments)
        other = module(lambda *given: (*given[:-1], given[-1].real + 0j), *arguments)
        again = module(
            lambda *given: tuple(g + 0 if g.dtype != bool else g for g in given), *arguments
        )
    found = measured(worker, same, again, other, arguments=plain)
    assert found.failures == [None, None, "wrong_result"] and found.errors[1] == ""


def test_what_is_not_a_number_in_the_program_has_to_be_so_in_every_candidate(worker):
    def of(shift):
        return module(lambda x, y: (jnp.log(x @ y - 1), 1 / (x * 0), x + shift))

    found = measured(worker, of(0), of(0), of(1), GOOD)
    assert found.failures == [None, None, "wrong_result", "wrong_result"]
