"""What Graph.from_lowered takes and refuses; stages are recognized without JAX."""

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


@pytest.mark.parametrize(
    "stage", [Lowered(), Traced(), Wrapper(Lowered()), Wrapper(Traced()), Computation()]
)
def test_lowered_and_traced_functions_and_their_wrappers_are_taken(stage):
    assert Graph.from_lowered(stage).whole().hlo_module == b"module"


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (print, "print>.* was given, expected the result of jax"),
        ("HloModule m", "'HloModule m' was given.* from_hlo_text takes text"),
        (b"\n\x01m", "bytes.* was given.* from_hlo_proto"),
        (Path("step.hlo"), "step.hlo.* from_file a path"),
        ([Lowered()], "list.* was given, expected the result"),
        (None, "None was given"),
        (Failing(), "Failing.* cannot be converted to HLO: several platforms; expected"),
    ],
)
def test_everything_else_is_refused_with_what_it_is_and_what_to_do(given, reason):
    with pytest.raises(ArgumentError, match=reason):
        Graph.from_lowered(given)
