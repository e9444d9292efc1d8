"""Which configuration an instance gets without a server: some choices, and a tree of their order.

The choices are those whose best is least above the best of all, in the mean of the measured
instances. The tree asks about features of the instance, and each split makes the first choices of
its two sides lose least: a tree that predicts times would spend its splits on what no choice
changes.
"""

import keyword
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from hlorank.checks.arguments import wrong
from hlorank.checks.files import write_json
from hlorank.spaces.space import Value

Feature = float | str
"""A feature of an instance."""

DEPTH = 8
"""Maximum number of questions about an instance."""
_LEAST = 3
"""Minimum number of instances of a leaf."""
_PRIOR = 1.0
"""Instances that the mean of the parent counts as in the order of a leaf."""
_CLIP = np.log(1.5)
"""What counts as lost at most, so that few instances that lose a lot do not make all splits."""
_MULTIPLE = 256
"""The largest power of two by which sizes are asked to be divisible."""

_FORMS: dict[str, tuple[str, Callable[..., bool]]] = {
    "text": ("{1} == {0}", lambda value, first: first == value),
    "number": ("{1} <= {0}", lambda value, first: first <= value),
    "multiple": ("{1} % {0} == 0", lambda value, first: first % value == 0),
    "product": ("{1} * {2} <= {0}", lambda value, first, second: first * second <= value),
    # A product on the other side, which no zero can break.
    "ratio": ("{1} <= {0} * {2}", lambda value, first, second: first <= value * second),
}


@dataclass(frozen=True)
class Question:
    """A question about an instance: a text, the limit of a number, or what divides it."""

    form: str
    """One of ``text``, ``number``, ``multiple``, ``product`` and ``ratio`` of two features"""
    features: tuple[str, ...]
    value: Feature

    def source(self, names: Mapping[str, str]) -> str:
        """Returns the question as Python, with what stands for each feature."""
        read = (names[feature] for feature in self.features)
        return _FORMS[self.form][0].format(repr(self.value), *read)

    def holds(self, one: Mapping[str, Any]) -> bool:
        """Returns the answer for an instance."""
        return _FORMS[self.form][1](self.value, *(one[feature] for feature in self.features))


@dataclass(frozen=True)
class Leaf:
    """The numbers of the choices, best first."""

    order: tuple[int, ...]


@dataclass(frozen=True)
class Split:
    """A question, and what follows."""

    question: Question
    yes: "Split | Leaf"
    no: "Split | Leaf"


@dataclass(frozen=True)
class HeldOut:
    """How far first picks are above the best, on instances from which nothing was chosen."""

    instances: int
    mean: float
    """Geometric mean of the pick's time over that of the best configuration"""
    p90: float
    """What nine of ten did not exceed"""
    above: float
    """Share of the instances above 1.1"""


@dataclass(frozen=True, repr=False)
class Policy:
    """What a library ships in place of a server: ``write`` it as JSON, or as ``python()``."""

    name: str
    choices: tuple[dict[str, Value], ...]
    tree: Split | Leaf
    held_out: HeldOut
    measured: float
    """Share of the times behind it that were measured; the server predicted the others"""

    def configurations(self, features: Mapping[str, Feature]) -> list[dict[str, Value]]:
        """Returns the choices for an instance, best first.

        Raises:
            ArgumentError: if a feature that the tree asks for is missing, or of another type.
        """
        try:
            return [self.choices[number] for number in _leaf_of(self.tree, features).order]
        except (KeyError, TypeError) as error:
            raise wrong("features", features, "those that the tree asks for") from error

    def python(self) -> str:
        """Returns the source of a function ``choose`` without imports, which takes the features of
        an instance by name, and returns the configurations, best first."""
        asked = sorted({each for split in _splits(self.tree) for each in split.question.features})
        taken = {*keyword.kwlist, "choices", "number", "order", "others"}
        plain = [each for each in asked if each.isidentifier() and each not in taken]
        names = {each: each if each in plain else f"others[{each!r}]" for each in asked}
        arguments = ", ".join((["*", *plain] if plain else []) + ["**others"])
        what, how_good = str(self).splitlines()
        lines = [f"def choose({arguments}):", f'    """{what}.', "", f'    {how_good}."""']
        lines += ["    choices = (", *(f"        {choice!r}," for choice in self.choices), "    )"]
        lines += _source(self.tree, names, 1)
        return "\n".join([*lines, "    return [choices[number] for number in order]", ""])

    def write(self, path: str | PathLike[str]) -> None:
        """Writes it as JSON: the choices, and the tree of questions and orders.

        Raises:
            ArgumentError: if it is no path, or the file cannot be written.
        """
        content = {
            "name": self.name,
            "choices": self.choices,
            "tree": _content(self.tree),
            "held_out": vars(self.held_out),
            "measured": self.measured,
        }
        write_json(content, path, indent=1)

    def __repr__(self) -> str:
        found = self.held_out
        leaves = 1 + sum(1 for _ in _splits(self.tree))
        return (
            f"{len(self.choices)} choices of {self.name} for an instance, by {leaves} leaves\n"
            f"{found.instances} instances held out: first choice {found.mean:.4f} of the best, "
            f"p90 {found.p90:.3f}, above 1.1: {found.above:.1%}; "
            f"{self.measured:.0%} of the times measured"
        )


def policy_of(
    name: str,
    configurations: Sequence[dict[str, Value]],
    instances: Sequence[Mapping[str, Feature]],
    slowdowns: np.ndarray,
    choices: int,
    measured: float = 1.0,
) -> Policy:
    """Chooses configurations and grows the tree.

    Args:
        name: Of the space.
        configurations: What to choose from.
        instances: The features of each; the tree asks for those that all have.
        slowdowns: [instances, configurations]: logarithms of times over that of the best.
        choices: How many configurations to choose.
        measured: Share of the times that were measured.
    """
    # Drawn in the order of the instances, which the caller makes the same in every call.
    is_held = np.zeros(len(instances), bool)
    is_held[np.random.default_rng(0).permutation(len(instances))[: len(instances) // 4]] = True
    kept = [one for one, held in zip(instances, is_held, strict=True) if not held]
    chosen, tree = _grown(kept, slowdowns[~is_held], choices)
    lost = np.array(
        [
            slowdowns[row, chosen[_leaf_of(tree, instances[row]).order[0]]]
            for row in is_held.nonzero()[0].tolist()
        ]
    )
    held_out = HeldOut(
        len(lost),
        float(np.exp(lost.mean())),
        float(np.exp(np.quantile(lost, 0.9))),
        float((lost > np.log(1.1)).mean()),
    )
    # What is shipped knows all instances.
    chosen, tree = _grown(instances, slowdowns, choices)
    return Policy(name, tuple(configurations[each] for each in chosen), tree, held_out, measured)


def _grown(
    instances: Sequence[Mapping[str, Feature]], slowdowns: np.ndarray, choices: int
) -> tuple[list[int], Split | Leaf]:
    chosen: list[int] = []
    best = np.full(len(slowdowns), _CLIP)
    for _ in range(min(choices, slowdowns.shape[1])):
        lost = np.minimum(best[:, None], slowdowns).sum(0)
        lost[chosen] = np.inf
        chosen.append(int(lost.argmin()))
        best = np.minimum(best, slowdowns[:, chosen[-1]])
    table = np.minimum(slowdowns[:, chosen], _CLIP)
    columns = [*_columns(instances)]
    return chosen, _branch(columns, table, np.arange(len(table)), table.mean(0), DEPTH)


@dataclass(frozen=True)
class _Column:
    """What a question can be about: instances with at most some value are on its left."""

    form: str
    features: tuple[str, ...]
    values: np.ndarray
    text: str = ""

    def question(self, low: float, high: float) -> Question:
        """Returns the question that parts two neighbouring values."""
        if self.form == "text":
            return Question(self.form, self.features, self.text)
        if self.form == "multiple":
            return Question(self.form, self.features, int(-low))
        # Sizes differ by factors, so a limit between them is their geometric mean.
        middle = float(np.sqrt(low * high) if low > 0 else (low + high) / 2)
        short = float(f"{middle:.4g}")
        return Question(self.form, self.features, short if low <= short < high else middle)


def _columns(instances: Sequence[Mapping[str, Feature]]) -> Iterator[_Column]:
    sizes: list[tuple[str, np.ndarray]] = []
    for name in sorted(set[str].intersection(*(set(one) for one in instances))):
        given = [one[name] for one in instances]
        texts = {value for value in given if isinstance(value, str)}
        for each in sorted(texts):
            yield _Column("text", (name,), np.array([value != each for value in given]), each)
        if texts:
            continue
        numbers = np.array(given, np.float64)
        yield _Column("number", (name,), numbers)
        if (numbers > 0).all() and len(np.unique(numbers)) > 1:
            sizes.append((name, numbers))
            if (numbers % 1 == 0).all() and numbers.max() < 1 << 62:
                whole = numbers.astype(np.int64)
                yield _Column("multiple", (name,), -np.minimum(whole & -whole, _MULTIPLE))
    for place, (name, numbers) in enumerate(sizes):
        for other, others in sizes[place + 1 :]:
            yield _Column("product", (name, other), numbers * others)
            yield _Column("ratio", (name, other), numbers / others)


def _branch(
    columns: Sequence[_Column], table: np.ndarray, rows: np.ndarray, prior: np.ndarray, depth: int
) -> Split | Leaf:
    """Grows the tree of some instances; ``prior`` has what the choices lose in those around."""
    lost = (table[rows].sum(0) + _PRIOR * prior) / (len(rows) + _PRIOR)
    least, best = table[rows].sum(0).min() - 1e-6, None
    for column in columns if depth else ():
        found = _cut(column.values[rows], table[rows])
        if found is not None and found[0] < least:
            least, best = found[0], column.question(*found[1:])
            is_left = column.values[rows] <= found[1]
    if best is None:
        return Leaf(tuple(np.argsort(lost, kind="stable").tolist()))
    sides = rows[is_left], rows[~is_left]
    return Split(best, *(_branch(columns, table, side, lost, depth - 1) for side in sides))


def _cut(values: np.ndarray, table: np.ndarray) -> tuple[float, float, float] | None:
    """Returns what the first choices of the best two sides lose, and the values around the cut."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    cuts = np.arange(_LEAST - 1, len(values) - _LEAST)
    cuts = cuts[ordered[cuts] < ordered[cuts + 1]]
    if not len(cuts):
        return None
    sums = table[order].cumsum(0)
    lost = sums[cuts].min(1) + (sums[-1] - sums[cuts]).min(1)
    cut = cuts[lost.argmin()]
    return float(lost.min()), float(ordered[cut]), float(ordered[cut + 1])


def _leaf_of(tree: Split | Leaf, one: Mapping[str, Any]) -> Leaf:
    while isinstance(tree, Split):
        tree = tree.yes if tree.question.holds(one) else tree.no
    return tree


def _splits(tree: Split | Leaf) -> Iterator[Split]:
    if isinstance(tree, Split):
        yield tree
        yield from _splits(tree.yes)
        yield from _splits(tree.no)


def _source(tree: Split | Leaf, names: Mapping[str, str], depth: int) -> list[str]:
    indent = "    " * depth
    if isinstance(tree, Leaf):
        return [f"{indent}order = {tree.order!r}"]
    lines = [f"{indent}if {tree.question.source(names)}:", *_source(tree.yes, names, depth + 1)]
    if isinstance(tree.no, Leaf):
        return [*lines, f"{indent}else:", *_source(tree.no, names, depth + 1)]
    first, *more = _source(tree.no, names, depth)
    return [*lines, f"{indent}el{first.lstrip()}", *more]


def _content(tree: Split | Leaf) -> dict[str, Any]:
    if isinstance(tree, Leaf):
        return {"order": tree.order}
    return {"if": vars(tree.question), "then": _content(tree.yes), "else": _content(tree.no)}
