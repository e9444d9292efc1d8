import pytest

pytest.importorskip("jax", reason="jax is not installed")

from hlorank_research.studies.fusion import Result, _table, study_fusion


def test_times_are_relative_to_the_program_and_beside_their_measurements():
    half = Result("half", [2e6, 2e6, 1e6, 2e6], [16, 40], 0.01)
    same = Result("same", [1e6, 1e6, 2e6, 1e6], [16, 30], 0.02)
    lines = [line.split() for line in _table([half, same]).splitlines()]
    assert [cell for cell in lines[2] if cell != "|"] == [
        *("half", "2.000", "1.000"),
        *("0.500", "16", "1.000", "40", "1.0%"),
    ]
    assert [cell for cell in lines[-1] if cell != "|"][2:4] == ["1.000", "1.000"]


def test_a_program_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(KeyError, match="nowhere"):
        study_fusion(["nowhere"], "127.0.0.1:1", tmp_path, 1, 10)
