"""Measuring the tiles of one dispatch in a process of its own."""

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytest.importorskip("iree.runtime", reason="iree-base-runtime is not installed")

from programs import HASTE
from small_programs import dispatches, product, shape

from hlorank_tune.iree.compiler import CONFIGURATIONS, CompileError, CompileProcess, compile_text
from hlorank_tune.iree.dispatch import with_tile
from hlorank_tune.iree.runtime import DispatchLoader, harness
from hlorank_tune.measure.host import measure_programs
from hlorank_tune.measure.workers import Worker

LOADER = DispatchLoader(product().bindings)


@pytest.fixture(scope="module")
def worker():
    with Worker("hlorank_tune.measure.host") as process:
        yield process


@pytest.fixture(scope="module")
def modules():
    """The default, and two tiles."""
    tiles = product().space.draw(np.random.default_rng(0), 2)
    texts = [product().configured, *(with_tile(product(), tile) for tile in tiles)]
    return [compile_text(harness(product(), t), begin=CONFIGURATIONS) for t in texts]


def test_the_default_and_tiles_have_run_times_and_equal_results(worker, modules):
    measured = measure_programs(worker, LOADER, modules, HASTE)
    assert measured.errors == ["", "", ""]
    assert measured.nanoseconds.shape == (3,) and (measured.nanoseconds > 0).all()
    assert (measured.nanoseconds == np.minimum(measured.first, measured.second)).all()
    assert 4 <= measured.rounds <= 6 and measured.repeated == 0
    print("nanoseconds:", measured.nanoseconds.round())


def test_a_dispatch_computes_its_product(modules):
    run = DispatchLoader(product().bindings).load(modules[0])
    a, b, c = (view.view("f4") for view in run.results())
    np.testing.assert_allclose(
        c.reshape(24, 48), a.reshape(24, 32) @ b.reshape(32, 48), rtol=1e-5, atol=1e-6
    )


def test_numbers_of_bfloat16_are_drawn_and_read_as_such():
    (found,) = dispatches(lambda x: x * 2, shape(64, dtype="bfloat16"))
    module = compile_text(harness(found, found.configured), begin=CONFIGURATIONS)
    given, doubled = DispatchLoader(found.bindings).load(module).results()
    assert given.dtype.name == "bfloat16" and given.any()
    assert (doubled == given + given).all()


def test_the_compiling_process_returns_modules_and_reasons(modules):
    with Worker("hlorank_tune.iree.compiler") as process:
        compiler = CompileProcess(process, 120)
        module = compiler.compile(harness(product(), product().configured))
        assert len(module) == len(modules[0])
        with pytest.raises(CompileError, match="nonsense"):
            compiler.compile("nonsense")
        assert compiler.compile(harness(product(), product().configured)) == module
