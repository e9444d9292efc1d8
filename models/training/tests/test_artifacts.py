"""What an artifact says of itself, of its graphs and of how far its rankings can be trusted.

Servers check the files, the interface and the golden scores of every artifact that ships.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hlorank_tune.measure.atomic_files import read_json, write_json

from hlorank_training.measuring.provenance import targets_of
from hlorank_training.shipping.calibration import (
    LEAST_LISTS,
    ScoredList,
    of_list,
    prior,
    write_calibration,
)
from hlorank_training.whole_graphs.graph import Permutations, ServingRule, model_inputs

REPOSITORY = Path(__file__).parents[3]
ARTIFACTS = [
    path.parent
    for folder in ("models/registry", "models/papers")
    for path in sorted((REPOSITORY / folder).glob("*/*/manifest.json"))
]


@pytest.mark.parametrize("artifact", ARTIFACTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_artifact_is_small_and_does_not_say_where_it_was_made(artifact):
    contents = [path.read_bytes() for path in artifact.iterdir()]
    assert sum(map(len, contents)) < 3_000_000
    for content in contents:
        assert b".py" not in content.replace(b".npy", b"")
        assert str(REPOSITORY).encode() not in content
    quality = read_json(artifact / "manifest.json")["measured_quality"]
    assert isinstance(quality.pop("split"), str)
    assert all(isinstance(value, (int, float)) for value in quality.values())


def scored_list(path, configurations, run_times) -> ScoredList:
    """A list of configurations, each scored by its first column."""
    np.savez(path, config_feat=np.float32(configurations), config_runtime=np.int64(run_times))
    return ScoredList.of(path, lambda _, chosen: np.float32(configurations)[chosen, 0])


def test_a_list_has_the_spread_of_its_scores_its_columns_and_its_tau(tmp_path):
    configurations = [[1, 7], [2, 7], [3, 7], [4, 7]]
    found = of_list(scored_list(tmp_path / "a.npz", configurations, [10, 20, 40, 30]))
    assert found["spread"] == pytest.approx(np.std([1, 2, 3, 4]), abs=1e-3)
    assert found["columns"] == pytest.approx([np.log([2, 3, 4, 5]).mean(), np.log(8)], abs=1e-3)
    assert found["tau"] == pytest.approx(4 / 6, abs=1e-3)


def test_a_long_list_is_looked_at_in_few_places(tmp_path):
    sizes = np.arange(3200)[:, None]
    found = of_list(scored_list(tmp_path / "a.npz", sizes, np.arange(3200) + 1))
    assert found["columns"] == pytest.approx([np.log1p(np.arange(0, 3200, 200)).mean()], abs=1e-3)
    assert found["tau"] == 1


def test_few_lists_are_no_calibration(tmp_path):
    lists = [scored_list(tmp_path / "a.npz", [[1], [2]], [1, 2])] * LEAST_LISTS
    assert write_calibration(tmp_path, lists[1:]) == ()
    assert not (tmp_path / "calibration.json").exists()
    (name,) = write_calibration(tmp_path, lists)
    assert len(read_json(tmp_path / name)["lists"]) == LEAST_LISTS


def test_a_prior_is_one_line_through_all_lists():
    scores = np.array([-1.0, 1, -1, 1])
    beside = np.array([-1.0, -1, 1, 1])
    lists = [(scores + mean, np.exp(0.2 * scores + 0.3 * beside + mean)) for mean in (0, 5)]
    assert prior(lists) == {"slope": 0.2, "spread": 0.3}
    differing = [(scores, np.exp(slope * scores)) for slope in (0.1, 0.3)]
    assert prior(differing) == {"slope": 0.2, "spread": 0.1}
    # A manifest has no slope of 0 or less.
    assert prior([(scores, np.exp(-scores))])["slope"] > 0


def test_targets_are_what_collections_were_measured_on(tmp_path):
    sources = {
        "a": {"source": "iree:cpu", "iree-base-compiler": "3.13.0", "threads": 1},
        "b": {"source": "iree:cpu", "iree-base-compiler": "3.13.0", "threads": 1},
        "c": {"source": "xla:cpu", "jax": "0.10.2", "threads": 2},
        "d": {"source": "my compiler", "threads": 1},
    }
    for name, source in sources.items():
        (tmp_path / name).mkdir()
        write_json(tmp_path / name / "provenance.json", {"processor": "AMD EPYC", **source})
    files = [tmp_path / name / "graph.pb" for name in (*sources, "without")]
    assert targets_of(files) == [
        {"hardware": "AMD EPYC", "compiler": compiler, "version": version, "flags": flags}
        for compiler, version, flags in (
            ("IREE", "3.13.0", ["1 thread"]),
            ("XLA", "of jax 0.10.2", ["2 threads"]),
        )
    ]


def test_orders_are_those_of_the_document():
    orders = [Permutations(2, seed=101).order(number, 8).tolist() for number in range(2)]
    assert orders == [[5, 6, 0, 4, 3, 2, 1, 7], [7, 2, 1, 4, 3, 5, 0, 6]]


def test_every_order_is_cut_on_its_own():
    rule = ServingRule(5, chunking="even", permutations=Permutations(3, seed=2**64 - 1))
    chunks = rule.chunks(12)
    assert [len(chunk) for chunk in chunks] == [4] * 9
    orders = np.concatenate(chunks).reshape(3, 12)
    assert (np.sort(orders) == np.arange(12)).all()
    assert (orders[0] != orders[1]).any()


def test_one_chunk_is_scored_once_in_the_order_given():
    rule = ServingRule(5, permutations=Permutations(3, seed=101))
    assert [chunk.tolist() for chunk in rule.chunks(5)] == [[0, 1, 2, 3, 4]]


def test_a_golden_case_shows_how_a_whole_batch_is_cut():
    even = ServingRule(128, chunking="even")
    assert len(even.chunks(even.whole_batch())) == 2
    assert ServingRule(128).whole_batch() == 0


def test_a_manifest_has_only_what_differs_from_the_defaults():
    assert ServingRule(5).manifest_fields() == {"chunk_configs": 5}
    rule = ServingRule(5, "pruned", "even", Permutations(10, 101))
    assert rule.manifest_fields() == {
        "chunk_configs": 5,
        "nodes": "pruned",
        "chunking": "even",
        "permutations": {"count": 10, "seed": 101},
    }


FIXTURES = sorted((REPOSITORY / "tests/data/registry").glob("*/1"))


@pytest.mark.parametrize("artifact", FIXTURES, ids=lambda path: path.parent.name)
def test_the_golden_scores_of_a_whole_graph_model_come_back(artifact):
    pytest.importorskip("torch", reason="torch is not installed")
    from hlorank_training.whole_graphs.onnx_model import OnnxWholeGraphModel

    fields = {field.name for field in dataclasses.fields(ServingRule)}
    rule = {
        key: value for key, value in read_json(artifact / "manifest.json").items() if key in fields
    }
    if "permutations" in rule:
        rule["permutations"] = Permutations(**rule["permutations"])
    rule = ServingRule(**rule)
    model = OnnxWholeGraphModel(artifact / "model.onnx", rule)
    with np.load(artifact / "golden.npz") as arrays:
        for case in {key.split("/")[0] for key in arrays.files}:
            golden = {
                key.split("/")[1]: arrays[key] for key in arrays if key.startswith(f"{case}/")
            }
            expected = golden.pop("score")
            assert len(expected) > 2 * rule.chunk_configs, "there are several chunks"
            assert len(np.unique(expected)) > 1
            graph, config = model_inputs(golden)
            assert model.score(graph, config) == pytest.approx(expected, rel=1e-5)
