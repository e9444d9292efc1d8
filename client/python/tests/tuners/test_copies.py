"""An adapter has the connection of its client, so it is made in each process."""

import pickle

import pytest

from hlorank import ArgumentError, Client

ADAPTERS = {
    "helion": ("Autotuner", ()),
    "inductor": ("Choices", ()),
    "kernel_tuner": ("Strategy", ()),
    "optuna": ("Sampler", ("toy",)),
    "triton": ("Pruner", ()),
    "tvm": ("CostModel", ()),
}


@pytest.mark.parametrize("module", ADAPTERS)
def test_an_adapter_says_that_each_process_makes_its_own(module):
    name, further = ADAPTERS[module]
    adapter = getattr(pytest.importorskip(f"hlorank.tuners.{module}"), name)
    made = adapter(Client("127.0.0.1:1"), "a board", *further)
    words = f"a {name} has a connection, which has no copy: .* make a Client in each"
    with pytest.raises(ArgumentError, match=words):
        pickle.dumps(made)
