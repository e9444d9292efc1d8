"""What the adapters of Triton and Inductor propose, in lists of GPU kernels that others measured.

Usage: proposals.py FOLDER, with the address of an empty server in HLORANK_ENDPOINT.

A list is a draw of a space, as a kernel's author writes one. FOLDER has lists KERNEL.GPU.npz.
"""

import argparse
import os
import uuid
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from hlorank import Client
from hlorank.tuners.proposals import Proposals, result_of, row_of

from measured_spaces import Space, mean_regret, read

_TOP_K = 16
_SIZES = (24, 100, 200, 400)
_SIZE_OF_OTHERS = 200
_SEEDS = range(3)
_NOISE = 0.02
_DRAWS = 200


def main() -> None:
    """Prints how much slower proposals are than the fastest configuration of their list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    spaces = read(parser.parse_args().folder)
    with Client(os.environ["HLORANK_ENDPOINT"]) as client:
        _print("another user measured the list, with 2 % of noise", own(client, spaces))
        _print("other GPUs measured the list", others(client, spaces))
    _print("random", drawn(spaces))


def own(client: Client, spaces: list[Space]) -> Iterator[tuple[float, float]]:
    """The second user of a target."""
    for space in spaces:
        rng = np.random.default_rng(0)
        for size in _SIZES:
            numbers = rng.choice(len(space.seconds), size, replace=False)
            server = _server(client, uuid.uuid4().hex)
            noise = np.exp(_NOISE * rng.standard_normal(size))
            _report(server, space, numbers, space.seconds[numbers] * noise)
            yield _slower(server, space, numbers)


def others(client: Client, spaces: list[Space]) -> Iterator[tuple[float, float]]:
    """The first user of a target, whose list was measured on all other GPUs."""
    for seed, space in _of_others(spaces):
        alike = [each for each in spaces if each.kernel == space.kernel]
        numbers = _common(alike, seed)
        targets = [uuid.uuid4().hex for _ in alike[1:]]
        rest = [each for each in alike if each is not space]
        for target, other in zip(targets, rest, strict=True):
            same = np.array([other.number[tuple(row)] for row in numbers])
            _report(_server(client, target), other, same, other.seconds[same])
        own_numbers = np.array([space.number[tuple(row)] for row in numbers])
        server = _server(client, uuid.uuid4().hex, other_targets=targets)
        yield _slower(server, space, own_numbers)


def drawn(spaces: list[Space]) -> Iterator[tuple[float, float]]:
    """Proposals at random, the mean over draws, in the lists of ``others``."""
    for seed, space in _of_others(spaces):
        alike = [each for each in spaces if each.kernel == space.kernel]
        seconds = space.seconds[[space.number[tuple(row)] for row in _common(alike, seed)]]
        rng = np.random.default_rng(seed)
        ran = [rng.choice(seconds, _TOP_K, replace=False) for _ in range(_DRAWS)]
        first = [[min(99.0, each[0] / seconds.min() - 1)] for each in ran]
        best = [[min(99.0, each.min() / seconds.min() - 1)] for each in ran]
        yield float(mean_regret(first)[0]), float(mean_regret(best)[0])


def _of_others(spaces: list[Space]) -> Iterator[tuple[int, Space]]:
    return ((seed, space) for seed in _SEEDS for space in spaces)


def _common(alike: list[Space], seed: int) -> list[tuple[int, ...]]:
    """A list of configurations that all GPUs have."""
    rows = sorted(set.intersection(*(set(space.number) for space in alike)))
    places = np.random.default_rng(seed).choice(len(rows), _SIZE_OF_OTHERS, replace=False)
    return [rows[place] for place in places]


def _server(client: Client, target: str, **options: list[str]) -> Proposals:
    return Proposals(client, target, top_k=_TOP_K, timeout=60.0, **options)


def _rows(space: Space, numbers: np.ndarray) -> list[dict[str, float]]:
    rows = space.parameters[numbers].tolist()
    return [row_of(dict(zip(space.columns, row, strict=True))) for row in rows]


def _report(server: Proposals, space: Space, numbers: np.ndarray, seconds: np.ndarray) -> None:
    rows = _rows(space, numbers)
    server.report(space.kernel, "", zip(rows, map(result_of, seconds.tolist()), strict=True))


def _slower(server: Proposals, space: Space, numbers: np.ndarray) -> tuple[float, float]:
    proposed = server.best(space.kernel, "", _rows(space, numbers))
    seconds = space.seconds[numbers]
    slower = np.minimum(99.0, seconds[proposed] / seconds.min() - 1)
    return float(slower[0]), float(slower.min())


def _print(title: str, slower: Iterator[tuple[float, float]]) -> None:
    found = np.array(list(slower))
    print(f"{title}: {len(found)} lists")
    for name, column in zip(("first", f"best of {_TOP_K}"), found.T, strict=True):
        mean = mean_regret(column[:, None])[0]
        print(f"  {name}: {mean:.1%} slower, at most {column.max():.1%}", flush=True)


if __name__ == "__main__":
    main()
