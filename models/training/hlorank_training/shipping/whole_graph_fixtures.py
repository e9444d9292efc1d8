"""Writes whole-graph artifacts for the server's tests: small architectures of the papers.

Their weights are random, so their scores have no meaning; they only test serving.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from hlorank.measure.schema import TuningData

from hlorank_training.data.featurize import feature_digest, featurize
from hlorank_training.data.whole_graph import read_whole_graph
from hlorank_training.models.early_join import EarlyJoin, EarlyJoinSettings
from hlorank_training.models.ensemble import ensemble
from hlorank_training.models.serving_rule import Permutations, ServingRule
from hlorank_training.models.whole_graph_model import WholeGraphModel
from hlorank_training.shipping.export import (
    ArtifactIdentity,
    digest,
    write_artifact,
    write_whole_graph_model,
)

_FULL_CHUNKS = ServingRule(chunk_configs=5)


@dataclass(frozen=True)
class WholeGraphFixture:
    """One artifact: its name, its model, and what the server gives the model."""

    name: str
    settings: EarlyJoinSettings
    rule: ServingRule = _FULL_CHUNKS
    seeds: tuple[int, ...] = (1,)
    """One member of the ensemble each; a single member is a model of its own."""


FIXTURES = (
    WholeGraphFixture("layout-whole-graph", EarlyJoinSettings("layout")),
    WholeGraphFixture(
        "layout-cross-configuration", EarlyJoinSettings("layout", cross_configuration=True)
    ),
    WholeGraphFixture("tile-whole-graph", EarlyJoinSettings("tile")),
    WholeGraphFixture(
        "layout-pruned",
        EarlyJoinSettings("layout"),
        ServingRule(chunk_configs=5, nodes="pruned"),
    ),
    # Two artifacts with the same weights, so that a test can order and average the scores of one.
    *(
        WholeGraphFixture(
            name,
            EarlyJoinSettings("layout", cross_configuration=True),
            ServingRule(5, nodes="pruned", chunking="even", permutations=permutations),
            seeds=(1, 2),
        )
        for name, permutations in (
            ("layout-even-chunks", None),
            ("layout-permuted", Permutations(count=3, seed=101)),
        )
    ),
)


def write_whole_graph_fixtures(measured: Path, hlorank: Path, out: Path) -> list[Path]:
    """Writes every fixture as version 1, with golden cases from the graphs in ``measured``."""
    kernels = measured / "tile_kernels.pb"
    kernel_count = len(TuningData.FromString(kernels.read_bytes()).modules)
    graphs = {
        "layout": [(file, None) for file in sorted(measured.glob("layout_*.pb"))],
        "tile": [(kernels, number) for number in range(kernel_count)],
    }
    featurizer = feature_digest(hlorank)
    written = []
    with TemporaryDirectory() as folder:
        for fixture in FIXTURES:
            chosen = graphs[fixture.settings.task]
            features = [Path(folder) / f"{file.stem}-{number}.npz" for file, number in chosen]
            featurize(hlorank, chosen, features)
            written.append(_write(fixture, features, featurizer, out))
    return written


def _write(
    fixture: WholeGraphFixture, features: Sequence[Path], featurizer: str, out: Path
) -> Path:
    folder = out / fixture.name / "1"
    (folder / "manifest.json").unlink(missing_ok=True)
    exported = write_whole_graph_model(untrained(fixture, features), folder)
    # There is no training data, so the digest is that of no files.
    identity = ArtifactIdentity(fixture.name, 1, featurizer, digest([]))
    write_artifact(folder, exported, identity, features, quality={})
    return folder


def untrained(fixture: WholeGraphFixture, features: Sequence[Path]) -> WholeGraphModel:
    """Returns the model with seeded random weights, standardized by the rows of ``features``."""
    graphs = [read_whole_graph(path, path.stem) for path in features]
    members = []
    for seed in fixture.seeds:
        torch.manual_seed(seed)
        members.append(EarlyJoin.for_graphs(fixture.settings, graphs).eval())
        members[-1].rule = fixture.rule
    return ensemble(members)
