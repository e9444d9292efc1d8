"""Writes whole-graph artifacts for the server's tests: small architectures of the papers.

Their weights are random, so their scores have no meaning; they only test serving.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from hlorank.measure.atomic_files import write_atomically, write_json
from hlorank.measure.schema import TuningData

from hlorank_training.data.featurize import feature_digest, featurize
from hlorank_training.models.whole_graph_model import (
    WholeGraphEnsemble,
    WholeGraphModel,
    WholeGraphSettings,
)
from hlorank_training.shipping.export import ArtifactIdentity, digest, manifest
from hlorank_training.shipping.golden import GoldenRule, golden_cases, npz_bytes
from hlorank_training.shipping.serving_rule import Permutations, ServingRule
from hlorank_training.shipping.whole_graph_onnx import OnnxWholeGraphModel, write_whole_graph_onnx

_FULL_CHUNKS = ServingRule(chunk_configs=5)


@dataclass(frozen=True)
class WholeGraphFixture:
    """One artifact: its name, its model, and what the server gives the model."""

    name: str
    settings: WholeGraphSettings
    architecture: str
    rule: ServingRule = _FULL_CHUNKS
    seeds: tuple[int, ...] = (1,)
    """One member of the ensemble each; a single member is a model of its own."""


FIXTURES = (
    WholeGraphFixture("layout-whole-graph", WholeGraphSettings("layout"), "graphsage-early-join"),
    WholeGraphFixture(
        "layout-cross-configuration",
        WholeGraphSettings("layout", cross_configuration=True),
        "graphsage-cross-configuration",
    ),
    WholeGraphFixture("tile-whole-graph", WholeGraphSettings("tile"), "graphsage-early-join"),
    WholeGraphFixture(
        "layout-pruned",
        WholeGraphSettings("layout"),
        "graphsage-early-join",
        ServingRule(chunk_configs=5, nodes="pruned"),
    ),
    # Two artifacts with the same weights, so that a test can order and average the scores of one.
    *(
        WholeGraphFixture(
            name,
            WholeGraphSettings("layout", cross_configuration=True),
            "graphsage-cross-configuration-ensemble-2",
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
    write_whole_graph_onnx(untrained(fixture, features), folder / "model.onnx")
    model = OnnxWholeGraphModel(folder / "model.onnx", fixture.rule.chunk_configs, fixture.rule)
    golden = npz_bytes(golden_cases(features, model.score_file, GoldenRule()))
    write_atomically(folder / "golden.npz", golden)
    kind = {
        "task": fixture.settings.task,
        "architecture": fixture.architecture,
        "kind": "graph",
        **fixture.rule.manifest_fields(),
        "batch_dependent": fixture.settings.cross_configuration,
    }
    # There is no training data, so the digest is that of no files.
    identity = ArtifactIdentity(fixture.name, 1, featurizer, digest([]))
    files = ("model.onnx", "golden.npz")
    write_json(folder / "manifest.json", manifest(folder, files, identity, kind, quality={}))
    return folder


def untrained(
    fixture: WholeGraphFixture, features: Sequence[Path]
) -> WholeGraphModel | WholeGraphEnsemble:
    """Returns the model with seeded random weights, standardized by the rows of ``features``."""
    members = [_member(fixture, seed, features) for seed in fixture.seeds]
    return members[0] if len(members) == 1 else WholeGraphEnsemble(members).eval()


def _member(fixture: WholeGraphFixture, seed: int, features: Sequence[Path]) -> WholeGraphModel:
    torch.manual_seed(seed)
    model = WholeGraphModel(fixture.settings).eval()
    model.standardise.fit(_rows(features, "node_feat"))
    if fixture.settings.task == "tile":
        model.configuration.standardise.fit(_rows(features, "config_feat"))
    return model


def _rows(features: Sequence[Path], key: str) -> torch.Tensor:
    arrays = []
    for path in features:
        with np.load(path) as file:
            arrays.append(file[key])
    return torch.from_numpy(np.concatenate(arrays))
