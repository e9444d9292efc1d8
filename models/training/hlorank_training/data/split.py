"""Which graphs and kernels train the model, stop the training, or are held out."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True)
class Split:
    """Names by use. No graph or kernel is in two of them."""

    train: tuple[str, ...]
    validation: tuple[str, ...]
    test: tuple[str, ...]
    unseen_family: tuple[str, ...] = ()
    """Those of the test whose whole family is held out."""


@dataclass(frozen=True)
class SplitRule:
    """Shares are of the names in the order of their SHA-256, so that nobody picks."""

    test: float = 0.2
    validation: float = 0.15
    unseen_families: int = 0
    """How many families are held out whole, by the SHA-256 of their names too."""


RULES = {
    "layout": SplitRule(unseen_families=2),
    "tile": SplitRule(unseen_families=4),
}
"""By task."""


def split(families: dict[str, str], rule: SplitRule) -> Split:
    """Split names, given with their family."""
    apart = shuffled(sorted(set(families.values())))[: rule.unseen_families]
    unseen = shuffled([name for name, family in families.items() if family in apart])
    names = shuffled([name for name, family in families.items() if family not in apart])
    tests, validations = round(rule.test * len(names)), round(rule.validation * len(names))
    return Split(
        train=tuple(names[tests + validations :]),
        validation=tuple(names[tests : tests + validations]),
        test=(*names[:tests], *unseen),
        unseen_family=tuple(unseen),
    )


def shuffled(names: Sequence[str]) -> list[str]:
    """In the order of the SHA-256 of the names, so that nobody picks."""
    return sorted(names, key=lambda name: sha256(name.encode()).digest())
