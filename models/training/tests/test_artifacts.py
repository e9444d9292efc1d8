"""What an artifact says of itself, of its graphs and of how far its rankings can be trusted.

Servers check the files, the interface and the golden scores of every artifact that ships.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from hlorank_training.measuring.provenance import targets_of
from hlorank_training.shipping.calibration import (
    LEAST_LISTS,
    ScoredList,
    of_list,
    prior,
    write_calibration,
)
from hlorank_training.whole_graphs.graph import Permutations, ServingRule, model_inputs, pruned

REPOSITORY = Path(__file__).parents[3]
ARTIFACTS = [
    path.parent
    for folder in ("models/registry", "models/papers")
    for path in sorted((REPOSITORY / folder).glob("*/*/manifest.json"))
]
each_artifact = pytest.mark.parametrize(
    "artifact", ARTIFACTS, ids=lambda path: f"{path.parent.name}-{path.name}"
)


def manifest(artifact: Path) -> dict:
    return json.loads((artifact / "manifest.json").read_text(encoding="utf-8"))


@each_artifact
def test_an_artifact_is_small_and_does_not_say_where_it_was_made(artifact):
    contents = [path.read_bytes() for path in artifact.iterdir()]
    assert sum(map(len, contents)) < 3_000_000
    for content in contents:
        assert b".py" not in content.replace(b".npy", b"")
        assert str(REPOSITORY).encode() not in content
    quality = manifest(artifact)["measured_quality"]
    assert isinstance(quality.pop("split"), str)
    assert all(isinstance(value, (int, float)) for value in quality.values())


def _write_list(path, configurations, run_times):
    np.savez(path, config_feat=np.float32(configurations), config_runtime=np.int64(run_times))
    return path


def _by_first_column(path, chosen):
    with np.load(path) as arrays:
        return arrays["config_feat"][chosen, 0]


def test_a_list_has_the_spread_of_its_scores_its_columns_and_its_tau(tmp_path):
    path = _write_list(tmp_path / "a.npz", [[1, 7], [2, 7], [3, 7], [4, 7]], [10, 20, 40, 30])
    found = of_list(ScoredList.of(path, _by_first_column))
    assert found["spread"] == pytest.approx(np.std([1, 2, 3, 4]), abs=1e-3)
    assert found["columns"] == pytest.approx([np.log([2, 3, 4, 5]).mean(), np.log(8)], abs=1e-3)
    assert found["tau"] == pytest.approx(4 / 6, abs=1e-3)


def test_a_long_list_is_looked_at_in_few_places(tmp_path):
    sizes = np.arange(3200)[:, None]
    path = _write_list(tmp_path / "a.npz", sizes, np.arange(3200) + 1)
    found = of_list(ScoredList.of(path, _by_first_column))
    assert found["columns"] == pytest.approx([np.log1p(np.arange(0, 3200, 200)).mean()], abs=1e-3)
    assert found["tau"] == 1


def test_few_lists_are_no_calibration(tmp_path):
    path = _write_list(tmp_path / "a.npz", [[1], [2]], [1, 2])
    lists = [ScoredList.of(path, _by_first_column)] * LEAST_LISTS
    assert write_calibration(tmp_path, lists[1:]) == ()
    assert not (tmp_path / "calibration.json").exists()
    (name,) = write_calibration(tmp_path, lists)
    assert len(json.loads((tmp_path / name).read_text())["lists"]) == LEAST_LISTS


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
        text = json.dumps({"processor": "AMD EPYC", **source})
        (tmp_path / name / "provenance.json").write_text(text)
    files = [tmp_path / name / "graph.pb" for name in (*sources, "without")]
    assert targets_of(files) == [
        {"hardware": "AMD EPYC", "compiler": compiler, "version": version, "flags": flags}
        for compiler, version, flags in (
            ("IREE", "3.13.0", ["1 thread"]),
            ("XLA", "of jax 0.10.2", ["2 threads"]),
        )
    ]


def sizes(rule: ServingRule, configs: int) -> list[int]:
    return [len(chunk) for chunk in rule.chunks(configs)]


def test_full_chunks_leave_a_shorter_one():
    assert sizes(ServingRule(128), 300) == [128, 128, 44]


@pytest.mark.parametrize(
    ("configs", "expected"),
    [(300, [100] * 3), (257, [86, 86, 85]), (129, [65, 64]), (128, [128]), (1, [1])],
)
def test_even_chunks_differ_by_one_at_most(configs, expected):
    rule = ServingRule(128, chunking="even")
    assert sizes(rule, configs) == expected
    assert np.concatenate(rule.chunks(configs)).tolist() == list(range(configs))


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


def test_pruning_keeps_configurable_nodes_and_their_neighbours():
    graph = {
        "opcode": np.arange(10, 17),
        "features": np.arange(7.0)[:, None],
        "edges": np.array([[1, 2, 2, 4, 5], [0, 0, 1, 3, 2]]),
        "configurable": np.array([6, 1]),
    }
    kept = pruned(graph)
    assert kept["opcode"].tolist() == [10, 11, 12, 16]
    assert kept["features"][:, 0].tolist() == [0, 1, 2, 6]
    assert kept["edges"].tolist() == [[1, 2], [0, 1]]
    assert kept["configurable"].tolist() == [3, 1]


FIXTURES = sorted((REPOSITORY / "tests/data/registry").glob("*/1"))


@pytest.mark.parametrize("artifact", FIXTURES, ids=lambda path: path.parent.name)
def test_the_golden_scores_of_a_whole_graph_model_come_back(artifact):
    pytest.importorskip("torch", reason="torch is not installed")
    from hlorank_training.whole_graphs.onnx_model import OnnxWholeGraphModel

    content = manifest(artifact)
    orders = content.get("permutations")
    rule = ServingRule(
        content["chunk_configs"],
        content.get("nodes", "all"),
        content.get("chunking", "full"),
        Permutations(**orders) if orders else None,
    )
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
