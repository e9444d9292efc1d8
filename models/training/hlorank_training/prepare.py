"""From a folder of measurements to featurized graphs, split for training and test."""

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from .dataset import Graph, read_graph
from .featurize import feature_digest, featurize
from .files import read_json
from .split import Split, SplitRule, split


@dataclass(frozen=True)
class Prepared:
    """Featurized graphs by name, and which of them are for what."""

    feature_digest: str
    split: Split
    features: dict[str, Path]
    tuning_files: dict[str, Path]
    families: dict[str, str]

    def graphs(self, names: Iterable[str]) -> list[Graph]:
        """Read the named graphs."""
        return [read_graph(self.features[name]) for name in names]


def prepare(task: str, data: Path, hlorank: Path) -> Prepared:
    """Featurize every graph that was measured steadily enough, and split them.

    Features are kept in a folder of the featurizer's digest: another featurizer starts anew.
    """
    digest = feature_digest(hlorank)
    families = steady_families(data)
    files = {name: data / f"{name}.pb" for name in families}
    outputs = featurize(hlorank, list(files.values()), data / "features" / digest[:16])
    features = dict(zip(files, outputs, strict=True))
    parts = split(families, split_rule(task, families))
    return Prepared(digest, parts, features, files, families)


def steady_families(data: Path, least_agreement: float = 0.5) -> dict[str, str]:
    """Family by name of the graphs whose two measuring passes agree at least that well (tau).

    Where they do not, the label's order is noise: it can neither teach nor test.
    """
    names = sorted(path.stem for path in data.glob("*.pb"))
    records = [read_json(data / f"{name}.json") for name in names]
    return {
        record["name"]: record["family"]
        for record in records
        if record["tau_between_passes"] >= least_agreement
    }


def split_rule(task: str, families: dict[str, str]) -> SplitRule:
    """For tiles, the family whose name's SHA-256 comes first is held out whole."""
    if task == "layout":
        return SplitRule()
    first = min(set(families.values()), key=lambda name: sha256(name.encode()).digest())
    return SplitRule(held_out_families=(first,))
