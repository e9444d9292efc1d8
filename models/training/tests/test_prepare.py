"""Tuning files become features, splits and held-out judgements, by measures of quality."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.atomic_files import write_json

from hlorank_training.data.dataset import Graph, read_graph
from hlorank_training.data.featurize import Source
from hlorank_training.data.prepare import (
    Prepared,
    SplitRule,
    prepare,
    split,
    split_sources,
)
from hlorank_training.data.ranking_quality import (
    kendall_tau,
    ordered_pair_accuracy,
    random_slowdown,
    top_slowdown,
)
from hlorank_training.judging import held_out_quality

FEATURIZER = """#!{python}
import sys
digest = "{digest}"
if "--digest" in sys.argv:
    print(digest)
else:
    with open(sys.argv[sys.argv.index("--out") + 1], "a") as output:
        output.write(digest[0])
"""
"""Stands in for the hlorank program: a feature file names the digest, once per call."""


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    for name, agreement in (("steady", 0.9), ("noisy", 0.1)):
        record = {"name": name, "family": "a", "tau_between_passes": agreement}
        write_json(folder / f"{name}.json", record)
        (folder / f"{name}.pb").touch()
    return folder


def prepare_with(digest: str, data: Path) -> Prepared:
    program = data.parent / "hlorank"
    program.write_text(FEATURIZER.format(python=sys.executable, digest=digest), encoding="utf-8")
    program.chmod(0o755)
    return prepare("layout", data, program)


def test_another_featurizer_featurizes_anew_and_the_same_one_does_not(data):
    first, second = "a" * 64, "b" * 64
    for digest in (first, first, second, first):
        prepared = prepare_with(digest, data)
        assert prepared.feature_digest == digest
        assert prepared.features["steady"].read_text() == digest[0]
        assert prepared.features["steady"].parent == data / "features" / digest[:16]


def test_graphs_whose_passes_disagree_are_left_out(data):
    assert list(prepare_with("a" * 64, data).features) == ["steady"]


def test_a_program_without_a_digest_is_refused(data):
    with pytest.raises(RuntimeError, match="expected a feature digest"):
        prepare_with("not a digest", data)


def source(name: str, family: str, part: str | None = None) -> Source:
    return Source(name, Path(f"{name}.pb"), None, name.split("/")[-1], family, part, 0.9)


def test_all_collections_of_a_graph_are_for_the_same_use():
    names = [f"{folder}/g{i}" for folder in ("default", "random") for i in range(40)]
    parts = split_sources("layout", [source(name, f"family {name[-1]}") for name in names])
    for use in (parts.train, parts.validation, parts.test, parts.unseen_family):
        both = [{name.split("/")[-1] for name in use if name.startswith(f)} for f in "dr"]
        assert both[0] == both[1] != set()


def test_folders_of_tpugraphs_say_what_a_graph_is_for():
    found = [source(f"{part}/g", "f", part) for part in ("train", "validation", "test")]
    parts = split_sources("tile", found)
    assert parts.train == ("train/g",)
    assert parts.validation == ("validation/g",)
    assert parts.test == ("test/g",)


def test_a_folder_without_graphs_says_what_to_do(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(RuntimeError, match="collect some"):
        prepare_with("a" * 64, tmp_path / "data")


REPOSITORY = Path(__file__).parents[3]
TPU = REPOSITORY.parent / "shared" / "data" / "tpu"
MEASURED = REPOSITORY / "tests" / "data" / "measured"


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "data"


def put(file: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, folder / file.name)


def test_every_kernel_of_a_file_is_a_graph_of_its_own(hlorank, folder):
    put(MEASURED / "tile_kernels.pb", folder / "train")
    put(MEASURED / "tile_kernels.pb", folder / "valid")
    prepared = prepare("tile", folder, hlorank)
    assert len(prepared.split.train) == len(prepared.split.validation) >= 5
    assert prepared.split.test == ()
    graphs = prepared.graphs(prepared.split.train)
    assert all(len(graph.runtimes) > 1 for graph in graphs)
    assert len({graph.name for graph in graphs}) == len(graphs)
    assert {graph.family for graph in graphs} == {"tile_kernels"}
    assert all(graph.default_runtime >= graph.runtimes.min() for graph in graphs)


@pytest.mark.skipif(not TPU.exists(), reason="the TpuGraphs files are not here")
def test_real_npz_files_of_both_tasks_are_read(hlorank, folder):
    put(TPU / "alexnet_layout.npz", folder / "layout" / "xla" / "random" / "train")
    for part, file in zip(
        ("train", "valid", "test"), sorted(TPU.glob("tile_test/*.npz")), strict=False
    ):
        put(file, folder / "tile" / "xla" / part)
    layout = prepare("layout", folder / "layout", hlorank)
    assert layout.split.train == ("xla/random/train/alexnet_layout",)
    (graph,) = layout.graphs(layout.split.train)
    assert len(graph.runtimes) == 47_712
    assert sorted(len(s.opcode) for s in graph.segments) == [3, 7, 9, 9, 9, 11, 25]
    assert sorted(len(s.local) for s in graph.segments) == [2, 9, 33, 48, 48, 48, 65]
    tile = prepare("tile", folder / "tile", hlorank)
    names = [*tile.split.train, *tile.split.validation, *tile.split.test]
    assert [len(g.segments[0].opcode) for g in tile.graphs(names)] == [2, 52, 15]


def test_a_single_file_is_a_data_set_of_one_graph(hlorank, folder):
    file = sorted(MEASURED.glob("layout_*.pb"))[0]
    put(file, folder)
    prepared = prepare("layout", folder / file.name, hlorank)
    assert list(prepared.features) == [file.stem]
    graph = read_graph(prepared.features[file.stem], file.stem)
    assert graph.default_runtime in graph.runtimes


SOURCES = {
    f"{family}_{number}": source(f"{family}_{number}", family)
    for family in "abcdefgh"
    for number in range(10)
}


class Measured(Prepared):
    """Graphs that need no files of features."""

    default: int | None = 20

    def graphs(self, names):
        return [Graph(name, (), np.array([30, 10, 20]), self.default) for name in names]


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


def test_a_graph_without_a_measured_default_has_no_slowdown_of_it(prepared):
    class WithoutDefault(Measured):
        default = None

    graphs = WithoutDefault("0" * 64, prepared.split, {}, SOURCES)
    assert "default_slowdown" not in held_out_quality(graphs, right)["measured_quality"]


FAMILIES = {f"{family}_{i}": family for family in ("a", "b", "c") for i in range(20)}


def test_every_name_is_in_one_part_and_an_unseen_family_only_in_the_test():
    parts = split(FAMILIES, SplitRule(unseen_families=1))
    assert sorted([*parts.train, *parts.validation, *parts.test]) == sorted(FAMILIES)
    (apart,) = {FAMILIES[name] for name in parts.unseen_family}
    assert len(parts.unseen_family) == 20
    assert {name for name in parts.test if FAMILIES[name] == apart} == set(parts.unseen_family)
    assert len(parts.test) == 20 + 8


def test_the_split_does_not_depend_on_the_order_of_names():
    backwards = dict(reversed(FAMILIES.items()))
    assert split(backwards, SplitRule()) == split(FAMILIES, SplitRule())


RUNTIMES = np.array([30, 10, 20, 40])


def test_the_right_order_has_tau_one_the_reverse_minus_one_and_constant_scores_zero():
    assert kendall_tau(RUNTIMES, RUNTIMES) == pytest.approx(1)
    assert kendall_tau(-RUNTIMES, RUNTIMES) == pytest.approx(-1)
    assert kendall_tau(np.zeros(4), RUNTIMES) == 0


def test_equal_scores_count_as_wrong_in_pair_accuracy():
    assert ordered_pair_accuracy(np.zeros(4), RUNTIMES) == 0
    assert ordered_pair_accuracy(RUNTIMES, RUNTIMES) == 1
    assert ordered_pair_accuracy(np.array([1, 0, 0, 2]), RUNTIMES) == pytest.approx(5 / 6)


def test_ties_in_scores_are_broken_by_index():
    assert top_slowdown(np.zeros(4), RUNTIMES, 1) == pytest.approx(2)
    assert top_slowdown(np.zeros(4), RUNTIMES, 2) == 0


def test_random_slowdown_is_the_mean_of_all_choices():
    # By hand: the minimum of each of the six pairs.
    pairs = [min(a, b) for i, a in enumerate(RUNTIMES) for b in RUNTIMES[i + 1 :]]
    assert random_slowdown(RUNTIMES, 1) == pytest.approx(RUNTIMES.mean() / 10 - 1)
    assert random_slowdown(RUNTIMES, 2) == pytest.approx(np.mean(pairs) / 10 - 1)
    assert random_slowdown(RUNTIMES, 9) == pytest.approx(0)
