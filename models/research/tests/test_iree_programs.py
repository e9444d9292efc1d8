import numpy as np
import pytest

jax = pytest.importorskip("jax", reason="jax is not installed")

from hlorank_research.studies.iree_programs import programs  # noqa: E402
from hlorank_training.measuring.iree_programs import training_programs  # noqa: E402

PROGRAMS = programs()


def test_the_study_has_at_least_ten_programs_with_names_of_their_own():
    names = {program.name for program in PROGRAMS}
    assert len(names) == len(PROGRAMS) >= 10
    assert not names & {network.name for network in training_programs()}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_a_program_returns_finite_values_that_vary(program):
    for result in jax.tree.leaves(jax.jit(program.function)(*program.arguments)):
        assert np.isfinite(result).all()
        assert np.std(result) > 1e-4


def test_arguments_are_the_same_whenever_they_are_made():
    for first, second in zip(PROGRAMS, programs(), strict=True):
        for a, b in zip(first.arguments, second.arguments, strict=True):
            np.testing.assert_array_equal(a, b)


def test_training_takes_a_few_inference_networks_of_every_family_that_has_any():
    networks = training_programs()
    families = [network.family for network in networks]
    assert len(set(families)) >= 15
    assert max(map(families.count, families)) <= 2
    assert not any(network.train for network in networks)
