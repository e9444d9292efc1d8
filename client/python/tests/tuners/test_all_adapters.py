"""What all adapters have in common: when they are made, and that they have no copy."""

import pickle

import pytest

from hlorank import ArgumentError, Client

ADAPTERS = {
    "helion": ("Autotuner", {}),
    "inductor": ("Choices", {}),
    "kernel_tuner": ("Strategy", {}),
    "optuna": ("Sampler", {"name": "toy"}),
    "triton": ("Pruner", {}),
    "tvm": ("CostModel", {}),
}


@pytest.mark.parametrize(
    ("module", "wrong", "words"),
    [
        *((module, {"target": ""}, "target is ''") for module in ADAPTERS),
        *((module, {"other_targets": "b"}, "other_targets is 'b'") for module in ADAPTERS),
        ("kernel_tuner", {"seed": -1}, "seed is -1"),
        ("optuna", {"seed": 0.5}, "seed is 0.5"),
        ("optuna", {"search_space": {"tile": [1, 2]}}, r"search_space\['tile'\] is \[1, 2\]"),
        ("optuna", {"decide": True}, "search_space is None"),
        ("kernel_tuner", {"decide": True, "on_away": "later"}, "on_away is 'later'"),
        ("inductor", {"decide": True, "group": "all"}, "group is 'all'"),
        ("triton", {"top_k": 0}, "top_k is 0"),
        ("triton", {"decide": "always"}, "decide is 'always'"),
        ("triton", {"decide": True, "on_away": "later"}, "on_away is 'later'"),
        ("tvm", {"exploration": -1}, "exploration is -1"),
        ("tvm", {"seed": None}, "seed is None"),
    ],
)
def test_an_argument_is_refused_by_its_name_when_an_adapter_is_made(module, wrong, words):
    name, further = ADAPTERS[module]
    adapter = getattr(pytest.importorskip(f"hlorank.tuners.{module}"), name)
    with pytest.raises(ArgumentError, match=words):
        adapter(Client("127.0.0.1:1"), **({"target": "a board"} | further | wrong))


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_says_that_each_process_makes_its_own(module):
    name, further = ADAPTERS[module]
    adapter = getattr(pytest.importorskip(f"hlorank.tuners.{module}"), name)
    made = adapter(Client("127.0.0.1:1"), "a board", **further)
    words = f"a {name} has a connection, which has no copy: .* make a Client in each"
    with pytest.raises(ArgumentError, match=words):
        pickle.dumps(made)
