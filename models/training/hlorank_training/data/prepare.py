"""Prepares a folder of measurements: featurizes the graphs and splits them."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

from hlorank_training.data.dataset import Measured, read_graph
from hlorank_training.data.featurize import PAD_VALUE, feature_digest, featurize
from hlorank_training.data.sources import FEATURES_FOLDER, PARTS, Source, sources
from hlorank_training.data.split import RULES, Split, split

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
    digest = feature_digest(hlorank)
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
