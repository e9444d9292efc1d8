"""Assigns graphs and kernels to training, validation and test."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True)
class Split:
    """Names by part. No graph or kernel is in two parts."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    unseen_family: tuple[str, ...] = ()
    """Names of the test part whose whole family is held out."""


@dataclass(frozen=True)
class SplitRule:
    """The sizes of the parts, as shares of the names sorted by SHA-256, so that nobody chooses."""

    test: float = 0.2
    validation: float = 0.15
    unseen_families: int = 0
    """Number of families that are held out whole, also chosen by the SHA-256 of their names."""


RULES = {
    "layout": SplitRule(unseen_families=2),
    "tile": SplitRule(unseen_families=4),
}
"""By task."""


def split(families: dict[str, str], rule: SplitRule) -> Split:
    """Splits names, given with their families."""
    apart = shuffled(sorted(set(families.values())))[: rule.unseen_families]
    unseen = shuffled([name for name, family in families.items() if family in apart])
    names = shuffled([name for name, family in families.items() if family not in apart])
    tests = round(rule.test * len(names))
    validations = round(rule.validation * len(names))
    return Split(
        train=tuple(names[tests + validations :]),
        validation=tuple(names[tests : tests + validations]),
        test=(*names[:tests], *unseen),
        unseen_family=tuple(unseen),
    )


def shuffled(names: Sequence[str]) -> list[str]:
    """Sorts names by their SHA-256, so that nobody chooses the order."""
    return sorted(names, key=lambda name: sha256(name.encode()).digest())
