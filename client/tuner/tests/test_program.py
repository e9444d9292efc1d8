import importlib.metadata
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("jax", reason="jax is not installed")

from library_words import assert_own_words
from measured import read_graphs
from programs import HASTE, product
from servers import DATA

from hlorank import GraphFileError
from hlorank_tune.xla import LayoutCompiler, Program

TYPES = """HloModule types

ENTRY main {
  a = f32[4,4] parameter(0)
  b = bf16[4,4] parameter(1)
  c = f16[] parameter(2)
  d = f64[2] parameter(3)
  e = s8[3] parameter(4)
  f = s64[] parameter(5)
  g = u32[3,1] parameter(6)
  h = pred[5] parameter(7)
  i = pred[] parameter(8)
  j = f32[0,2] parameter(9)
  wide = f32[4,4] convert(b)
  dot = f32[4,4] dot(a, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT all = (f32[4,4], f16[], f64[2], s8[3], s64[], u32[3,1], pred[5], pred[], f32[0,2]) tuple(dot, c, d, e, f, g, h, i, j)
}
"""  # noqa: E501
NAMES = ["float32", "bfloat16", "float16", "float64", "int8", "int64", "uint32", "bool", "bool"]


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "types.hlo"
        path.write_text(text)
        return path

    return write


def test_parameters_of_any_number_are_drawn_and_run(written, tmp_path):
    program = Program.from_file(written(TYPES))
    assert [a.dtype.name for a in program.arguments] == [*NAMES, "float32"]
    assert [a.shape for a in program.arguments[:4]] == [(4, 4), (4, 4), (), (2,)]
    with LayoutCompiler(program) as compiler:
        compiler.open(tmp_path)
        itself = compiler.whole.reference
        (outcome,) = compiler.measure(compiler.whole, [itself], HASTE, 60.0, lambda _: None)
    assert outcome.status == "measured", outcome.message


def test_the_same_numbers_are_drawn_every_time(written):
    one, other = (Program.from_file(written(TYPES)).arguments for _ in range(2))
    assert all((a == b).all() for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("kind", ["(f32[2], f32[2])", "c64[2]", "token[]"])
def test_a_parameter_that_is_no_array_of_numbers_is_named(written, kind):
    text = TYPES.replace("parameter(9)", f"parameter(9)\n  odd = {kind} parameter(10)")
    with pytest.raises(GraphFileError, match=r"types.hlo: parameter 'odd.*tuned from Python"):
        Program.from_file(written(text))


def test_a_measured_graph_is_a_program(tmp_path):
    path = DATA / "measured/layout_random_window_reversed.pb"
    program = Program.from_file(path)
    assert program.name == read_graphs(path)[0].name and len(program.arguments) > 0


def test_a_function_is_traced_with_what_it_takes():
    program = Program.from_function(lambda tree, scale: tree["x"] * scale, {"x": np.arange(3)}, 2.5)
    assert [a.dtype.name for a in program.arguments] == ["int32", "float32"]
    assert product().name == "product"


def test_a_jax_that_lacks_what_compiles_modules_is_named_with_what_to_do():
    program = """
import jax
from jaxlib import _jax
del _jax.CompileOptions
from hlorank import HlorankError
try:
    import hlorank_tune.measure.execute
except HlorankError as error:
    print(error)
"""
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout
    version = importlib.metadata.version("jax")
    assert said.startswith(f"jax {version} does not compile HLO modules as hlorank-tune knows it;")
    assert_own_words(said)
