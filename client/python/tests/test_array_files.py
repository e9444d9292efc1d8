"""Npz files: ``tests/data/arrays`` holds this reader and Rust's to one set of rules."""

import json

import pytest
from servers import DATA

from hlorank import GraphFileError, read_graphs

FOLDER = DATA / "arrays"
CASES = json.loads((FOLDER / "cases.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["file"])
def test_arrays_are_taken_or_refused_as_by_every_client(case):
    path = FOLDER / case["file"]
    if "message" in case:
        with pytest.raises(GraphFileError) as refused:
            read_graphs(path)
        assert case["message"] in str(refused.value)
        return
    [plain], [found] = read_graphs(FOLDER / "plain.npz"), read_graphs(path)
    assert found.graph.whole() == plain.graph.whole()
    assert found.configurations.wire == plain.configurations.wire
    assert found.run_times.tolist() == case["times"]
