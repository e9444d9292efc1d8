from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_training.data.dataset import Graph
from hlorank_training.data.prepare import Prepared, split_sources
from hlorank_training.data.sources import Source
from hlorank_training.judging.held_out import held_out_quality, quality_table

SOURCES = {
    f"{family}_{number}": Source(
        f"{family}_{number}", Path("graph.pb"), None, f"{family}_{number}", family, None, 0.9
    )
    for family in "abcdefgh"
    for number in range(10)
}


class Measured(Prepared):
    """Graphs that need no files of features."""

    def graphs(self, names):
        return [Graph(name, (), np.array([30, 10, 20]), 20) for name in names]


@pytest.fixture(params=["layout", "tile"])
def prepared(request) -> Measured:
    parts = split_sources(request.param, list(SOURCES.values()))
    return Measured("0" * 64, parts, {}, SOURCES)


def right(graph: Graph) -> np.ndarray:
    return graph.runtimes.astype(float)


def test_the_quality_of_a_manifest_has_flat_keys_with_a_number_each(prepared):
    quality = held_out_quality(prepared, right)
    means = quality["measured_quality"]
    assert isinstance(means.pop("split"), str)
    assert all(isinstance(value, (int, float)) for value in means.values())
    assert (means["kendall_tau"], means["noise_ceiling"]) == (1, 0.9)
    assert set(quality["per_graph"]) == set(prepared.split.test)


def test_the_unseen_families_do_not_count_among_the_known(prepared):
    def wrong_for_unseen(graph: Graph) -> np.ndarray:
        return right(graph) * (-1 if graph.name in prepared.split.unseen_family else 1)

    means = held_out_quality(prepared, wrong_for_unseen)["measured_quality"]
    assert (means["kendall_tau"], means["unseen_family.kendall_tau"]) == (1, -1)
    assert means["unseen_family.graphs"] == len(prepared.split.unseen_family) > 0
    assert means["graphs"] + means["unseen_family.graphs"] == len(prepared.split.test)


def test_the_table_has_every_graph_the_means_and_what_needs_no_model(prepared):
    lines = quality_table(prepared, held_out_quality(prepared, right)).splitlines()
    assert len(lines) == 2 + len(prepared.split.test) + 2 + 2
    assert len({len(line) for line in lines}) == 1
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert ["mean", "1.00", "1.00", "0.0%", "0.0%", "0.0%", "0.90"] in cells
    assert ["random", "0.00", "0.50", "100.0%", "0.0%", "0.0%", ""] in cells
    assert ["always the default", "", "", "100.0%", "", "", ""] in cells


def test_a_graph_without_a_measured_default_has_no_slowdown_of_it(prepared):
    class WithoutDefault(Measured):
        def graphs(self, names):
            return [Graph(name, (), np.array([30, 10, 20]), None) for name in names]

    folders = WithoutDefault("0" * 64, prepared.split, {}, SOURCES)
    assert "default_slowdown" not in held_out_quality(folders, right)["measured_quality"]
