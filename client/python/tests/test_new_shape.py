"""docs/new-shape.md as printed, with fewer measurements."""

import json
import re

from page_commands import commands, partition
from servers import REPOSITORY, run_empty_server

PAGE = REPOSITORY / "docs/new-shape.md"
EXAMPLE = REPOSITORY / "client/python/examples/shapes/tune.py"


def test_the_page_quotes_the_example_and_is_short():
    text = PAGE.read_text()
    assert 'instance={"m": m, "n": n, "k": k},' in text
    assert 'instance={"m": m, "n": n, "k": k},' in EXAMPLE.read_text()
    assert len(text.split()) <= 500


def test_a_new_shape_is_answered_from_the_others(shell, tmp_path):
    before, serve, (several, new, export) = partition(commands(PAGE))
    assert serve == "hlorank-server --models models --measurements measurements"
    for command in before:
        shell(command)
    assert "$shape 20" in several and several.count('"') == 10
    with run_empty_server(tmp_path / "models") as server:
        first = shell(several.replace("$shape 20", "$shape 16"), HLORANK_ENDPOINT=server.address)
        found = shell(new, HLORANK_ENDPOINT=server.address)
        source = shell(export, HLORANK_ENDPOINT=server.address)
    assert first.startswith("first pick: None rests on: nothing")
    # The server learns behind the calls, so that the last of them may be missing.
    assert re.search(r"rests on: [45] instances, \d+ measurements", found)
    assert "first pick: ({'TILE_I'" in found
    known = {}
    exec(source, known)
    policy = json.loads((tmp_path / "product.json").read_text())
    assert known["choose"](m=384, n=512, k=96)[0] in policy["choices"]
