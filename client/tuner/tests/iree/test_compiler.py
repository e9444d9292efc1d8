"""Compiling with IREE in this process."""

from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")

from small_programs import mixed, shape, stablehlo

from hlorank_tune.iree.compiler import (
    CONFIGURATIONS,
    SOURCES,
    STABLEHLO_FLAGS,
    CompileError,
    compile_text,
    compiler_version,
    lower_text,
)

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


def test_an_unknown_flag_is_named():
    with pytest.raises(CompileError, match="no-such-flag") as error:
        compile_text(mixed(), (*STABLEHLO_FLAGS, "--no-such-flag"))
    assert compiler_version() in str(error.value)


def test_an_unknown_phase_is_named():
    with pytest.raises(CompileError, match="no-such-phase"):
        lower_text(mixed(), "no-such-phase", STABLEHLO_FLAGS)


def test_an_error_leaves_nothing_for_the_next_program():
    with pytest.raises(CompileError):
        compile_text("nonsense", STABLEHLO_FLAGS)
    assert len(compile_text(mixed(), STABLEHLO_FLAGS)) > 1000


def test_phases_continue_where_the_text_is():
    text = stablehlo(lambda a, b: a @ b, shape(24, 32), shape(32, 48))
    source = lower_text(text, SOURCES, STABLEHLO_FLAGS)
    assert "hal.executable" in source and "lowering_config" not in source
    configured = lower_text(source, CONFIGURATIONS, STABLEHLO_FLAGS, begin=SOURCES)
    assert "lowering_config" in configured
    module = compile_text(configured, STABLEHLO_FLAGS, begin=CONFIGURATIONS)
    assert len(module) == pytest.approx(len(compile_text(text, STABLEHLO_FLAGS)), rel=0.1)


def test_sessions_give_their_memory_back():
    text = stablehlo(lambda a, b: a @ b, shape(24, 32), shape(32, 48))
    for _ in range(3):
        lower_text(text, CONFIGURATIONS, STABLEHLO_FLAGS)
    before = resident_megabytes()
    for _ in range(20):
        lower_text(text, CONFIGURATIONS, STABLEHLO_FLAGS)
    grown = resident_megabytes() - before
    print(f"{grown:.1f} MB more after 20 sessions")
    assert grown < 20
