"""TpuGraphs' own files, as they lie in its folders, are sources of graphs too."""

import shutil
from pathlib import Path

import pytest

pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_training.data.dataset import read_graph
from hlorank_training.data.prepare import prepare

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


@pytest.mark.skipif(not TPU.exists(), reason="the TpuGraphs files are not here")
def test_real_tuning_data_holds_fifteen_kernels_with_their_default(hlorank, folder):
    put(TPU / "alexnet_tile_kernels.pb", folder / "train")
    prepared = prepare("tile", folder, hlorank)
    graphs = prepared.graphs(prepared.split.train)
    assert sorted((len(g.runtimes) for g in graphs), reverse=True)[:3] == [579, 61, 23]
    assert all(graph.default_runtime >= graph.runtimes.min() for graph in graphs)
    assert {source.family for source in prepared.sources.values()} == {"alexnet_tile_kernels"}


def test_a_single_file_is_a_data_set_of_one_graph(hlorank, folder):
    file = sorted(MEASURED.glob("layout_*.pb"))[0]
    put(file, folder)
    prepared = prepare("layout", folder / file.name, hlorank)
    assert list(prepared.features) == [file.stem]
    graph = read_graph(prepared.features[file.stem], file.stem)
    assert graph.default_runtime in graph.runtimes
