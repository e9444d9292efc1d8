"""Searches by hlorank within Kernel Tuner, on the server that HLORANK_ENDPOINT names."""

import os
import uuid

from hlorank import Client
from hlorank.tuners.kernel_tuner import Strategy

import kernel_tuner_search
from measured_spaces import Space

_FIRST = 20
"""Measurements of the first of two users."""


def search(space: Space, seed: int) -> list[int]:
    """A search on a target of which the server knows nothing."""
    with Client(os.environ["HLORANK_ENDPOINT"]) as client:
        return _search(client, space, _target(), seed)


def second_search(space: Space, seed: int) -> list[int]:
    """A search after another user's, who measured less."""
    with Client(os.environ["HLORANK_ENDPOINT"]) as client:
        target = _target()
        _search(client, space, target, seed, _FIRST)
        return _search(client, space, target, seed)


def _search(client: Client, space: Space, target: str, seed: int, *budget: int) -> list[int]:
    strategy = Strategy(client, target, kernel=space.kernel, instance=space.gpu, seed=seed)
    return kernel_tuner_search.search(strategy, space, seed, *budget)


def _target() -> str:
    return uuid.uuid4().hex
