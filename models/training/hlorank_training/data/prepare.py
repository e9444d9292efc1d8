"""Prepares a folder of measurements: featurizes the graphs and splits them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from pathlib import Path

from hlorank_training.data.dataset import Measured, read_graph
from hlorank_training.data.featurize import (
    FEATURES_FOLDER,
    PAD_VALUE,
    PARTS,
    TPUGRAPHS,
    Source,
    feature_digest,
    featurize,
    sources,
)


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
MIN_AGREEMENT = 0.5
"""Minimum Kendall's tau between two measuring passes; graphs below it are noise and not used."""
MIN_TRAINING_AGREEMENT = {"layout": 0.75, "tile": MIN_AGREEMENT}
"""Minimum tau for training; graphs below it are only used for the test. Many layouts differ by less
than their noise, and models that were also trained on such lists ordered left-out graphs worse."""


@dataclass(frozen=True)
class Form:
    """The form in which a model takes graphs."""

    read: Callable[[Path, str], Measured] = read_graph
    """Reads the arrays that ``hlorank graph features`` wrote; takes the path and a name."""
    pad_value: int = PAD_VALUE
    """Value of the places of list columns that a list does not fill."""
    feature_set: str = TPUGRAPHS
    """Name of the feature set, whose digest a manifest has."""


SEGMENTS = Form()
"""Graphs in segments, without padding of lists."""


@dataclass(frozen=True)
class Prepared:
    """Featurized graphs by name, and their split."""

    feature_digest: str
    split: Split
    features: dict[str, Path]
    sources: dict[str, Source]
    form: Form = SEGMENTS

    def graphs(self, names: Iterable[str]) -> list[Measured]:
        """Reads the named graphs."""
        return [
            replace(self.form.read(self.features[name], name), family=self.sources[name].family)
            for name in names
        ]


def prepare(task: str, data: Path, hlorank: Path, form: Form = SEGMENTS) -> Prepared:
    """Featurizes and splits every graph with a sufficient agreement of its measurements.

    Features are kept in a folder for each featurizer and pad value, named by the featurizer's
    digest.
    """
    digest = feature_digest(hlorank, form.feature_set)
    usable = [s for s in sources(data, hlorank) if _agrees(s, MIN_AGREEMENT)]
    base = data.parent if data.is_file() else data
    padding = "" if form.pad_value == PAD_VALUE else f"_pad{form.pad_value}"
    folder = base / FEATURES_FOLDER / f"{digest[:16]}{padding}"
    features = {source.name: folder / f"{source.name}.npz" for source in usable}
    featurize(
        hlorank, [(s.file, s.module) for s in usable], list(features.values()), form.pad_value
    )
    by_name = {source.name: source for source in usable}
    for_training = {
        source.name for source in usable if _agrees(source, MIN_TRAINING_AGREEMENT[task])
    }
    parts = split_sources(task, usable)
    train, validation = (
        tuple(name for name in names if name in for_training)
        for names in (parts.train, parts.validation)
    )
    parts = replace(parts, train=train, validation=validation)
    return Prepared(digest, parts, features, by_name, form)


def _agrees(source: Source, least: float) -> bool:
    return source.noise_ceiling is None or source.noise_ceiling >= least


def split_sources(task: str, found: Sequence[Source]) -> Split:
    """Splits as the folders define, or by our own rule if they define no split."""
    if any(source.part for source in found):
        parts = {p: tuple(s.name for s in found if s.part == p) for p in PARTS.values()}
        return Split(**parts)
    by_graph = split({source.graph: source.family for source in found}, RULES[task])

    def names(graphs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(s.name for graph in graphs for s in found if s.graph == graph)

    return Split(**{part.name: names(getattr(by_graph, part.name)) for part in fields(Split)})


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
