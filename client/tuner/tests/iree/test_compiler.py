"""IREE's compiler, and the specs that it takes."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytest.importorskip("iree.runtime", reason="iree-base-runtime is not installed")

from small_programs import MIXED, mixed, mixed_dispatches, product, shape, stablehlo, tile_of

from hlorank_tune.iree.compiler import (
    CONFIGURATIONS,
    SOURCES,
    SPEC_FLAG,
    STABLEHLO_FLAGS,
    CompileError,
    compile_text,
    compiler_version,
    lower_text,
)
from hlorank_tune.iree.dispatch import lowering_config
from hlorank_tune.iree.runtime import ProgramLoader
from hlorank_tune.iree.spec import applied, missing, tuning_spec

PRODUCT = stablehlo(lambda a, b: a @ b, shape(24, 32), shape(32, 48))
UNKNOWN = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.custom_call"(%x) {call_target_name = "missing"} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


def resident_megabytes():
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmRSS")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "source.mlir:1:1: custom op 'nonsense' is unknown"),
        ("func.func @main() { return 1 }", "source.mlir:1:27: expected operation name"),
        (UNKNOWN, "source.mlir:3:8: failed to legalize operation 'stablehlo.custom_call'"),
    ],
    ids=["unknown operation", "syntax", "what IREE cannot lower"],
)
def test_an_error_names_the_place_and_the_reason_in_one_line(text, reason):
    with pytest.raises(CompileError) as error:
        compile_text(text, STABLEHLO_FLAGS)
    assert str(error.value).startswith(reason)
    assert "\n" not in str(error.value)


def test_an_unknown_flag_or_phase_is_named():
    with pytest.raises(CompileError, match="no-such-flag") as error:
        compile_text(mixed(), (*STABLEHLO_FLAGS, "--no-such-flag"))
    assert compiler_version() in str(error.value)
    with pytest.raises(CompileError, match="no-such-phase"):
        lower_text(mixed(), "no-such-phase", STABLEHLO_FLAGS)


def test_phases_continue_where_the_text_is():
    source = lower_text(PRODUCT, SOURCES, STABLEHLO_FLAGS)
    assert "hal.executable" in source and "lowering_config" not in source
    configured = lower_text(source, CONFIGURATIONS, STABLEHLO_FLAGS, begin=SOURCES)
    assert "lowering_config" in configured
    module = compile_text(configured, STABLEHLO_FLAGS, begin=CONFIGURATIONS)
    assert len(module) == pytest.approx(len(compile_text(PRODUCT, STABLEHLO_FLAGS)), rel=0.1)


def test_sessions_give_their_memory_back():
    for _ in range(3):
        lower_text(PRODUCT, CONFIGURATIONS, STABLEHLO_FLAGS)
    before = resident_megabytes()
    for _ in range(20):
        lower_text(PRODUCT, CONFIGURATIONS, STABLEHLO_FLAGS)
    assert resident_megabytes() - before < 20


@pytest.fixture(scope="module")
def chosen():
    """A tile other than the default for every dispatch of the mixed program."""
    random = np.random.default_rng(0)
    return {d.name: d.space.draw(random, 1)[0] for d in mixed_dispatches()}


@pytest.fixture(scope="module")
def spec(chosen, tmp_path_factory):
    path = tmp_path_factory.mktemp("spec") / "spec.mlir"
    path.write_text(tuning_spec(mixed_dispatches(), chosen))
    return path


def test_a_spec_sets_every_tile(chosen, spec):
    found = applied(mixed(), str(spec), STABLEHLO_FLAGS)
    assert len(chosen) == 5 and missing(chosen, found) == []
    assert found == {name: lowering_config(tile) for name, tile in chosen.items()}
    for dispatch in mixed_dispatches():
        assert found[dispatch.name] != lowering_config(dispatch.space.default)


def test_a_spec_for_some_dispatches_leaves_the_others(chosen, tmp_path):
    first, *others = mixed_dispatches()
    path = tmp_path / "spec.mlir"
    path.write_text(tuning_spec([first], chosen))
    found = applied(mixed(), str(path), STABLEHLO_FLAGS)
    assert missing({first.name: chosen[first.name]}, found) == []
    for dispatch in others:
        assert tile_of(found[dispatch.name]) == lowering_config(dispatch.space.default)
    assert missing(chosen, found) == [dispatch.name for dispatch in others]


def test_a_spec_of_another_program_changes_nothing(chosen, spec):
    found = applied(PRODUCT, str(spec), STABLEHLO_FLAGS)
    assert found.keys() == {product().name}
    assert tile_of(found[product().name]) == lowering_config(product().space.default)
    assert missing(chosen, found) == list(chosen)
    with_spec = compile_text(PRODUCT, (*STABLEHLO_FLAGS, f"{SPEC_FLAG}={spec}"))
    assert with_spec == compile_text(PRODUCT, STABLEHLO_FLAGS)


def test_a_spec_changes_its_compilation_alone_and_no_results(spec):
    plain = compile_text(mixed(), STABLEHLO_FLAGS)
    tuned = compile_text(mixed(), (*STABLEHLO_FLAGS, f"{SPEC_FLAG}={spec}"))
    assert compile_text(mixed(), STABLEHLO_FLAGS) == plain != tuned
    random = np.random.default_rng(0)
    arguments = tuple(random.standard_normal(one.shape).astype("f4") for one in MIXED)
    runs = map(ProgramLoader(arguments).load, (plain, tuned))
    for one, other in zip(*(run.results() for run in runs), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_spec_that_iree_cannot_read_is_an_error(tmp_path):
    path = tmp_path / "spec.mlir"
    with pytest.raises(CompileError, match=r"spec\.mlir"):
        applied(mixed(), str(path), STABLEHLO_FLAGS)
    path.write_text("nonsense")
    with pytest.raises(CompileError, match=r"nonsense|spec\.mlir"):
        applied(mixed(), str(path), STABLEHLO_FLAGS)
