from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_training.dataset import Graph
from hlorank_training.held_out import held_out_quality
from hlorank_training.prepare import Prepared, split_rule
from hlorank_training.schema import ModuleTuningData
from hlorank_training.split import split

FAMILIES = {f"{family}_{number}": family for family in ("a", "b") for number in range(10)}


class Measured(Prepared):
    """Graphs that need no files of features."""

    def graphs(self, names):
        return [Graph(name, (), np.array([30, 10, 20]), 20) for name in names]


def prepared(task: str, folder: Path) -> Measured:
    file = folder / "graph.pb"
    data = ModuleTuningData()
    for _ in range(3):
        data.runs.add()
    file.write_bytes(data.SerializeToString())
    parts = split(FAMILIES, split_rule(task, FAMILIES))
    return Measured("0" * 64, parts, {}, dict.fromkeys(FAMILIES, file), FAMILIES)


@pytest.mark.parametrize(
    ("task", "beside"), [("tile", "unseen_family"), ("layout", "moved_bytes_baseline")]
)
def test_what_stands_beside_the_model_has_flat_keys(task, beside, tmp_path):
    measured = prepared(task, tmp_path)
    quality = held_out_quality(task, measured, lambda graph: graph.runtimes.astype(float))
    means = quality["measured_quality"]
    assert isinstance(means.pop("split"), str)
    assert all(isinstance(value, (int, float)) for value in means.values())
    assert means["kendall_tau"] == 1
    assert f"{beside}.kendall_tau" in means
    assert set(quality["per_graph"]) == set(measured.split.test)


def test_the_unseen_family_does_not_count_among_the_known(tmp_path):
    measured = prepared("tile", tmp_path)
    apart = split_rule("tile", FAMILIES).held_out_families

    def right_for_known(graph: Graph) -> np.ndarray:
        return graph.runtimes * (-1.0 if FAMILIES[graph.name] in apart else 1.0)

    means = held_out_quality("tile", measured, right_for_known)["measured_quality"]
    assert (means["kendall_tau"], means["unseen_family.kendall_tau"]) == (1, -1)
    assert (means["graphs"], means["unseen_family.graphs"]) == (2, 10)
