"""What a file is: ``recognize.json`` holds this reader and Rust's to the same answers."""

import gzip
import json
from importlib.util import find_spec
from pathlib import Path

import pytest
from servers import DATA

from hlorank import GraphFileError
from hlorank.graph_file import file_graphs

VECTORS = json.loads((DATA / "recognize.json").read_text())
TABLES = [
    Path(__file__).parents[3] / "graph/src/recognize/formats.json",
    Path(__file__).parents[1] / "hlorank/recognize/formats.json",
]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
def test_every_file_is_read_or_named_as_by_every_client(tmp_path, vector):
    path = tmp_path / "graph"
    path.write_bytes(vector["latin_1"].encode("latin-1"))
    if "message" in vector:
        with pytest.raises(GraphFileError) as refused:
            file_graphs(path, "tile")
        assert str(refused.value) == f"{path}: {vector['message']}"
        return
    graphs = file_graphs(path, "tile")
    modules = [graph.source.field[vector["form"]] for graph in graphs]
    is_text = vector["form"] == "hlo_text"
    assert [module if is_text else module.decode("latin-1") for module in modules] == vector[
        "modules"
    ]


def test_the_table_of_formats_is_the_one_of_rust():
    assert TABLES[0].read_text() == TABLES[1].read_text()


@pytest.mark.parametrize("name", ["a folder", "a device"])
def test_what_is_no_file_is_named(tmp_path, name):
    path = tmp_path if name == "a folder" else "/dev/null"
    with pytest.raises(GraphFileError, match=f"this is {name}; pass a file"):
        file_graphs(Path(path), "layout")


@pytest.mark.skipif(
    any(find_spec(name) for name in ("zstandard", "compression")), reason="zstd can be read"
)
def test_zstd_needs_a_package_before_python_3_14(tmp_path):
    path = tmp_path / "dump.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd")
    with pytest.raises(GraphFileError, match=r"dump\.zst: this is zstd data"):
        file_graphs(path, "layout")


def test_a_file_that_grows_far_is_refused(tmp_path):
    path = tmp_path / "zeros.gz"
    path.write_bytes(gzip.compress(bytes(16 << 20)))
    with pytest.raises(GraphFileError, match="holds more than 4194304 bytes"):
        file_graphs(path, "layout")
