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


@dataclass(frozen=True)
class SplitRule:
    """Shares are of the names in the order of their SHA-256, so that nobody picks."""

    test: float = 0.2
    validation: float = 0.15
    held_out_families: tuple[str, ...] = ()
    """Families of which every member is held out for the test."""


def split(families: dict[str, str], rule: SplitRule) -> Split:
    """Split names, given with their family."""
    apart = [name for name, family in families.items() if family in rule.held_out_families]
    names = _shuffled([name for name in families if name not in apart])
    tests, validations = round(rule.test * len(names)), round(rule.validation * len(names))
    return Split(
        train=tuple(names[tests + validations :]),
        validation=tuple(names[tests : tests + validations]),
        test=(*names[:tests], *_shuffled(apart)),
    )


def _shuffled(names: Sequence[str]) -> list[str]:
    return sorted(names, key=lambda name: sha256(name.encode()).digest())
