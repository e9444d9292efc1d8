"""Whole searches for the tiles of a tiny program."""

import os
import re
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed")
pytest.importorskip("iree.compiler", reason="iree-base-compiler is not installed")
pytest.importorskip("iree.runtime", reason="iree-base-runtime is not installed")

from programs import hurry, rows, run_command
from servers import run_server

from hlorank import FAILURES, Client
from hlorank_tune.iree import IreeCompiler, StablehloProgram
from hlorank_tune.iree import tile_compiler as own

TEXT = """
func.func @main(%x: tensor<16x24xf32>, %y: tensor<24x32xf32>) -> tensor<16x32xf32> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
      : (tensor<16x24xf32>, tensor<24x32xf32>) -> tensor<16x32xf32>
  return %0 : tensor<16x32xf32>
}
"""
# IREE adds the dimension of a single image again after it has read a spec.
IMAGE = """
func.func @main(%x: tensor<1x8x8x4xf32>, %w: tensor<3x3x4x16xf32>) -> tensor<1x6x6x16xf32> {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x8x8x4xf32>, tensor<3x3x4x16xf32>) -> tensor<1x6x6x16xf32>
  return %0 : tensor<1x6x6x16xf32>
}
"""
NAME = "main_dispatch_0_matmul_16x32x24_f32"


@pytest.fixture(autouse=True)
def _hurry(monkeypatch, tmp_path):
    hurry(monkeypatch, IreeCompiler)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    Path("tiny.mlir").write_text(TEXT)


def test_a_search_ends_with_a_verdict_and_measures_nothing_again(capsys):
    arguments = ("tiny.mlir", "--without-model", "--measurements=2", "--out=out")
    code, out, err = run_command(capsys, "iree", *arguments)
    assert (code, err) == (0, "")
    assert ("tiny: " in out and "after 5 measurements" in out) or "after 3 measurements" in out
    assert "out/report.md" in out
    before = rows("out")
    measured = [row for row in before if "subject" in row]
    assert [row["subject"] for row in measured] == [NAME] * 3
    assert measured[0]["candidate"] == {} and all(row["nanoseconds"] for row in measured)
    report = Path("out/report.md").read_text()
    assert NAME in report
    assert run_command(capsys, "iree", *arguments)[0] == 0
    assert rows("out") == before, "the search is complete"


@pytest.mark.parametrize("is_faster", [True, False])
def test_a_spec_is_kept_only_if_the_whole_program_is_faster(capsys, monkeypatch, is_faster):
    measure = own.measure_programs

    def decided(worker, loader, modules, *limits):
        """Tiles take half the time; the program does so or takes as long."""
        found = measure(worker, loader, modules, *limits)
        is_program = isinstance(loader, own.ProgramLoader)
        gains = 1.0 if is_program and not is_faster else 0.5
        for times in (found.first, found.second):
            times[:] = [1000, *[1000 * gains] * (len(modules) - 1)]
        return found

    monkeypatch.setattr(own, "measure_programs", decided)
    code, out, _ = run_command(
        capsys, "iree", "tiny.mlir", "--without-model", "--measurements=2", "--top-k=2", "--out=out"
    )
    assert code == 0 and Path("out/spec.mlir").exists() is is_faster
    if not is_faster:
        assert "the whole program is not faster with the tiles" in out
        return
    assert "2.00 times as fast as your program as IREE compiles it" in out
    assert "iree-compile --iree-codegen-tuning-spec-path=out/spec.mlir" in out
    code, out, err = run_command(capsys, "iree", "tiny.mlir", "--replay=out")
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()] == ["program", "winner"]


def test_a_dispatch_that_a_spec_does_not_reach_is_not_measured(capsys):
    Path("image.mlir").write_text(IMAGE)
    code, out, _ = run_command(
        capsys, "iree", "image.mlir", "--without-model", "--measurements=1", "--out=out"
    )
    assert code == 0 and "after 0 measurements" in out
    assert sorted(path.name for path in Path("out").glob("*.mlir")) == []
    left = Path("out/report.md").read_text().split("Left as they are:")[1]
    assert "_conv_" in left and "a tuning spec does not reach it" in left


def test_what_is_measured_is_kept_by_a_server_with_a_store(capsys, tmp_path):
    with run_server(f"--measurements={tmp_path / 'measurements'}") as address:
        arguments = "--target=a board", "--measurements=4", "--top-k=2", "--predictions=64"
        code, out, err = run_command(
            capsys, "iree", "tiny.mlir", f"--endpoint={address}", *arguments, "--out=out"
        )
        with Client(address) as client:
            (kept,) = client.list_measurements("a board").graphs
    assert (code, err) == (0, "")
    tiles = [row for row in rows("out") if row.get("subject") and row["candidate"]]
    assert f"{len(tiles)} measurements are kept for later searches on 'a board'" in out
    times = sorted(row["nanoseconds"] or 0 for row in tiles)
    assert sorted(kept.seconds * 1e9) == pytest.approx(times)
    assert {row["failure"] for row in tiles if not row["nanoseconds"]} <= set(FAILURES)


def test_a_program_that_iree_cannot_compile_is_an_error(capsys):
    Path("bad.mlir").write_text(TEXT.replace("contracting_dims", "contracting"))
    code, _, err = run_command(capsys, "iree", "bad.mlir", "--without-model", "--out=out")
    assert code == 1 and err.startswith("error: IREE cannot compile 'bad': source.mlir:3:")


FOLDED = """
func.func @main() -> tensor<16x24xf32> {
  %0 = stablehlo.constant dense<0.5> : tensor<16x24xf32>
  %1 = stablehlo.add %0, %0 : tensor<16x24xf32>
  return %1 : tensor<16x24xf32>
}
"""
COPIED = (
    "func.func @main(%x: tensor<16x24xf32>) -> tensor<16x24xf32> { return %x : tensor<16x24xf32> }"
)


@pytest.mark.parametrize(
    ("text", "reason"), [(FOLDED, "its function main has no arguments"), (COPIED, "only copies")]
)
def test_a_program_without_dispatches_says_why(capsys, text, reason):
    Path("folded.mlir").write_text(text)
    code, _, err = run_command(capsys, "iree", "folded.mlir", "--without-model", "--out=out")
    assert code == 1 and err.startswith("error: IREE makes no dispatches of 'folded': ")
    assert reason in err and len(err) < 250


TORCH = """
func.func @main(%left: !torch.vtensor<[32,64],f32>, %right: !torch.vtensor<[64,16],f32>)
    -> !torch.vtensor<[32,16],f32> {
  %product = torch.aten.mm %left, %right : !torch.vtensor<[32,64],f32>, !torch.vtensor<[64,16],f32>
    -> !torch.vtensor<[32,16],f32>
  return %product : !torch.vtensor<[32,16],f32>
}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("module {}", "contains no function main"),
        (TEXT.replace("@main", "@main_graph"), "no function main, .* but main_graph; rename"),
        (TEXT.replace("16x", "?x"), "expected arrays of StableHLO with fixed shapes"),
        (TORCH, r"main takes !torch.vtensor<\[32,64\],f32>, expected arrays of StableHLO"),
        (TEXT.replace("f32", "f8E4M3FN"), "main takes .*, expected elements of type f16, f32"),
        (TEXT.replace("f32", "i4"), "expected elements of type"),
        (TEXT.replace("f32", "complex<f32>"), "expected arrays of StableHLO"),
        ("ML\udcefR", "is MLIR bytecode, expected text"),
        ("\udcff", "is not text in UTF-8"),
        (None, "error: bad.mlir cannot be read: No such file or directory\n"),
    ],
)
def test_a_file_without_arrays_of_fixed_shapes_is_an_error(capsys, text, reason):
    if text is not None:
        Path("bad.mlir").write_bytes(text.encode(errors="surrogateescape"))
    code, _, err = run_command(capsys, "iree", "bad.mlir", "--without-model")
    assert code == 1 and re.search(reason, err) and "bad.mlir" in err


def test_the_name_of_a_file_that_is_no_text_becomes_one():
    path = os.fsdecode(b"step\xff.mlir")
    Path(path).write_text(TEXT)
    assert StablehloProgram.from_file(path).name == "step\ufffd"
