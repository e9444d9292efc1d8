"""Measuring the tiles of one dispatch in a process of its own."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytest.importorskip("iree.runtime", reason="iree-base-runtime is not installed")

from small_programs import product

from hlorank_tune.iree import measure
from hlorank_tune.iree.compiler import CONFIGURATIONS, CompileError, CompileProcess, compile_text
from hlorank_tune.iree.dispatch import with_tile
from hlorank_tune.iree.measure import measure_modules, measuring_worker
from hlorank_tune.iree.runtime import DispatchSubject, harness
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.measure.workers import Worker, WorkerError

HASTE = Protocol(warmups=1, rounds=2, most_rounds=3, seconds=0.005, stretch_seconds=0.01, tries=0)
SUBJECT = DispatchSubject(product().bindings)


@pytest.fixture(scope="module")
def worker():
    with measuring_worker() as process:
        yield process


@pytest.fixture(scope="module")
def modules():
    """The default, and two tiles."""
    tiles = product().space.draw(np.random.default_rng(0), 2)
    texts = [product().configured, *(with_tile(product(), tile) for tile in tiles)]
    return [compile_text(harness(product(), t), begin=CONFIGURATIONS) for t in texts]


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path, str(Path(__file__).parent)])
    with Worker("fake_measure") as process:
        yield process


def test_the_default_and_tiles_have_run_times_and_equal_results(worker, modules):
    measured = measure_modules(worker, SUBJECT, modules, HASTE)
    assert measured.errors == ["", "", ""]
    assert measured.nanoseconds.shape == (3,) and (measured.nanoseconds > 0).all()
    assert (measured.nanoseconds == np.minimum(measured.first, measured.second)).all()
    assert 4 <= measured.rounds <= 6 and measured.repeated == 0
    print("nanoseconds:", measured.nanoseconds.round())


def test_a_dispatch_computes_its_product(modules):
    (run,) = SUBJECT.runs(modules[:1])
    a, b, c = (view.view("f4") for view in run.results())
    np.testing.assert_allclose(
        c.reshape(24, 48), a.reshape(24, 32) @ b.reshape(32, 48), rtol=1e-5, atol=1e-6
    )


def test_a_module_that_does_not_load_has_a_reason_and_the_others_run_times(worker, modules):
    measured = measure_modules(worker, SUBJECT, [modules[0], b"broken", modules[1]], HASTE)
    assert measured.errors[0] == measured.errors[2] == ""
    assert measured.errors[1] and "\n" not in measured.errors[1]
    assert measured.failures[1] is None, "this says nothing of a tile"
    assert np.isfinite(measured.nanoseconds).tolist() == [True, False, True]
    print("broken:", measured.errors[1])


def test_a_tile_with_another_result_is_an_error(worker, modules):
    text = product().configured
    wrong = text.replace("arith.addf", "arith.subf", 1)
    if wrong == text:
        wrong = text.replace("0.000000e+00", "1.000000e+00")
    assert wrong != text
    module = compile_text(harness(product(), wrong), begin=CONFIGURATIONS)
    measured = measure_modules(worker, SUBJECT, [modules[0], module], HASTE)
    assert measured.errors[0] == ""
    assert measured.errors[1].startswith("wrong result: results differ by ")
    assert measured.failures == [None, "wrong_result"]
    assert np.isfinite(measured.nanoseconds).tolist() == [True, False]


def test_a_module_that_crashes_is_left_out_and_the_others_are_measured(fake):
    measured = measure_modules(fake, None, [b"5", b"crash", b"7", b"crash", b"3"], HASTE)
    crashed = "crashed with SIGSEGV"
    assert measured.errors == ["", crashed, "", crashed, ""]
    assert measured.failures == [None, "crash", None, "crash", None]
    np.testing.assert_equal(measured.nanoseconds, [5, np.nan, 7, np.nan, 3])
    np.testing.assert_equal(measured.second, [6, np.nan, 8, np.nan, 4])


def test_a_module_that_hangs_is_left_out_and_the_others_are_measured(fake, monkeypatch):
    measure_modules(fake, None, [b"1"], HASTE)
    # The process starts anew after the hang, within this time.
    monkeypatch.setattr(measure, "RUN_SECONDS", 10.0)
    measured = measure_modules(fake, None, [b"5", b"7", b"hang"], HASTE)
    assert measured.errors == ["", "", "timed out after 10 s"]
    assert measured.failures[2] == "timeout"
    np.testing.assert_equal(measured.nanoseconds, [5, 7, np.nan])


def test_a_reference_that_crashes_is_an_error_of_the_whole(fake):
    with pytest.raises(WorkerError, match="crashed with SIGSEGV"):
        measure_modules(fake, None, [b"crash", b"5"], HASTE)
    assert measure_modules(fake, None, [b"5"], HASTE).errors == [""], "the process starts again"


def test_the_compiling_process_returns_modules_and_reasons(modules):
    with Worker("hlorank_tune.iree.compiler") as process:
        compiler = CompileProcess(process, 120)
        module = compiler.compile(harness(product(), product().configured))
        assert len(module) == len(modules[0])
        with pytest.raises(CompileError, match="nonsense"):
            compiler.compile("nonsense")
        assert compiler.compile(harness(product(), product().configured)) == module
