"""The code on the pages and the notebook, run as a reader would run it, with jax."""

import ast
import asyncio
import inspect
import json
import os
import re
import shutil
from pathlib import Path

import grpc
import numpy as np
import pytest
from servers import REPOSITORY

import hlorank
from hlorank_tune import Settings

jax = pytest.importorskip("jax", reason="jax is not installed")
nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")

PAGES = (
    "client/python/README.md",
    "docs/tune-a-program.md",
    "docs/bring-your-own-compiler.md",
)
NOTEBOOK = REPOSITORY / "client/tuner/examples/rank_and_tune.ipynb"
NOT_RUN = {
    "from hlorank_tune.measure.execute import on_device": "loads a winner; `step` may have none",
    'graph = Graph.from_feature_set("loop-nests-1"': "tests/test_own_compiler.py runs its example",
}
"""Blocks by how they begin, with the reason."""
SHORTER = {'"tuned/step"))': '"tuned/step", short))'}


def blocks(page: str) -> list[str]:
    """The Python blocks of a page."""
    return re.findall(r"^```python\n(.*?)^```", (REPOSITORY / page).read_text(), re.M | re.S)


def step(image, weights):
    """A program with layouts and with fusions."""
    return jax.nn.relu(image @ weights) @ weights + jax.numpy.tanh(image).sum()


def names(server: str) -> dict[str, object]:
    """What the blocks use and their pages leave to the reader."""
    draw = np.random.default_rng(0)
    values = np.full((40, 2, 3, 6), -1, np.int8)
    for slot in values[1:].reshape(-1, 3, 6):
        slot[:, :2] = [draw.permutation(2) for _ in range(3)]
    arguments = [np.ones((64, 64), np.float32)] * 2
    return {
        "arguments": arguments,
        "client": hlorank.Client(server),
        "graph": hlorank.Graph.from_lowered(jax.jit(step).lower(*arguments)),
        "grpc": grpc,
        "jax": jax,
        "measure": lambda layout: float(draw.uniform(0.001, 0.002)),
        "os": os,
        "short": Settings(measurements=2),
        "step": step,
        "values": values,
        **{name: getattr(hlorank, name) for name in ("Adapt", "AsyncClient", "Client", "Layouts")},
    }


@pytest.mark.parametrize("page", PAGES)
def test_the_python_of_a_page_runs(page, server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HLORANK_TOKEN", "0" * 64)
    Path("ca.crt").write_text("")
    known: dict[str, object] = {}
    for block in blocks(page):
        if block.startswith(tuple(NOT_RUN)):
            continue
        for old, new in {"127.0.0.1:7070": server, **SHORTER}.items():
            block = block.replace(old, new)
        # Blocks use one folder for programs of different kinds.
        shutil.rmtree("tuned", ignore_errors=True)
        known |= names(server)
        code = compile(block, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ran = eval(code, known)
        if inspect.iscoroutine(ran):
            asyncio.run(ran)


def test_every_reason_is_about_a_block():
    all_blocks = [block for page in PAGES for block in blocks(page)]
    for start in NOT_RUN:
        assert any(block.startswith(start) for block in all_blocks), start


def test_the_notebook_ranks_and_tunes(server, tmp_path, monkeypatch):
    monkeypatch.setenv("HLORANK_ENDPOINT", server)
    packages = [str(REPOSITORY / "client" / name) for name in ("python", "tuner")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(packages))
    import nbformat

    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not kept"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=600, resources=resources).execute()
    printed = json.dumps(notebook.cells)
    assert "1000 configurations of" in printed and "after 8 measurements" in printed
