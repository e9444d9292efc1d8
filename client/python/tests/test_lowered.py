"""What Graph.from_lowered takes and refuses; stages are recognized without JAX."""

from functools import partial
from pathlib import Path

import pytest

from hlorank import ArgumentError, Graph


class Computation:
    def as_serialized_hlo_module_proto(self):
        return b"module"


class Lowered:
    def compiler_ir(self, dialect):
        assert dialect == "hlo"
        return Computation()


class Traced:
    jaxpr = "{ lambda ; . }"

    def lower(self):
        return Lowered()


class Wrapper:
    """As those of Equinox and Flax."""

    def __init__(self, stage):
        self.lowered = stage


class Failing:
    def compiler_ir(self, dialect):
        raise NotImplementedError("several platforms\nand more")


class Compiled:
    def runtime_executable(self):
        pass


class CompiledWrapper:
    def __init__(self):
        self.compiled = Compiled()


class Jitted:
    def lower(self, *arguments):
        pass

    def __call__(self):
        pass


@pytest.mark.parametrize(
    "stage", [Lowered(), Traced(), Wrapper(Lowered()), Wrapper(Traced()), Computation()]
)
def test_lowered_and_traced_functions_and_their_wrappers_are_taken(stage):
    assert Graph.from_lowered(stage).whole().hlo_module == b"module"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (Compiled(), "Compiled was given, a compiled function, whose module is already optimized"),
        (CompiledWrapper(), "a compiled function.*pass the lowered function"),
        (Jitted(), r"a function that is not lowered: \.lower\(\*arguments\)"),
        (print, r"a function or class; lower it: jax\.jit\(function\)\.lower"),
        (partial(print, 1), r"a functools\.partial was given; lower it"),
        (Jitted, "a function or class"),
        (Failing(), "Failing cannot be converted to HLO: several platforms; expected"),
        ("HloModule m", r"HLO text was given.*use Graph\.from_hlo_text"),
        ("module @m { func.func @main }", "StableHLO text was given.*as_hlo_text"),
        ("step.hlo", r"use Graph\.from_file for a file"),
        (Path("step.hlo"), r"a path was given.*use Graph\.from_file"),
        (b"\n\x01m", r"bytes were given.*use Graph\.from_hlo_proto"),
        (None, r"None was given, expected the result of jax\.jit"),
        ([Lowered()], "list.* was given, expected the result"),
        (7, r"7 \(int\) was given"),
    ],
)
def test_everything_else_is_refused_with_what_it_is_and_what_to_do(given, reason):
    with pytest.raises(ArgumentError, match=reason):
        Graph.from_lowered(given)
