"""Whole searches for the compile options of a small program."""

import ast
import re
import runpy
from pathlib import Path

import pytest

pytest.importorskip("jax", reason="jax is not installed")

import jax
import numpy as np
from programs import hurry, rows, run_command
from servers import run_empty_server

from hlorank import Adapt, Client, ConfigFeatures, Layouts, Space
from hlorank_tune.measure import host
from hlorank_tune.subject import Settings
from hlorank_tune.xla import Program
from hlorank_tune.xla.options import ALL, FAST_MATH, OptionProblem, features_of

SCRIPT = """
import jax.numpy as jnp
import numpy as np
from hlorank_tune.xla import Program

def running(x):
    return jnp.cumsum(jnp.sort(x, axis=-1), axis=-1)

def scaled(x):
    return jnp.tanh(x) * 2

x = np.random.default_rng(0).standard_normal((32, 128)).astype(np.float32)
program = Program.from_function(running, x)
other = Program.from_function(scaled, x)
"""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch, tmp_path):
    hurry(monkeypatch)
    monkeypatch.chdir(tmp_path)
    Path("model.py").write_text(SCRIPT)


def problem(**options):
    return OptionProblem(Program.from_function(jax.numpy.tanh, np.ones(4, np.float32)), **options)


def test_a_search_says_plainly_what_it_gains_and_how_to_use_it(capsys):
    arguments = "model.py:program", "--without-model", "--measurements=6", "--out=out"
    code, out, err = run_command(capsys, "options", *arguments)
    assert (code, err) == (0, "")
    is_faster = re.search(r"running: [0-9.]+ times as fast as your program after 6 meas", out)
    assert is_faster or "running: nothing is faster than your program after 6 measurements" in out
    used = re.search(r"use it: jax.jit\(running, compiler_options=(\{.*\})\), with jax", out)
    assert bool(used) == bool(is_faster)
    if used:
        options = ast.literal_eval(used[1])
        jax.jit(jax.numpy.tanh, compiler_options=options)(1.0)
    before = rows("out")
    assert before[1]["candidate"] == {} and before[1]["nanoseconds"]
    assert run_command(capsys, "options", *arguments)[0] == 0 and rows("out") == before, (
        "the search is complete"
    )


def test_options_that_change_what_is_computed_are_off_unless_asked_for():
    for is_asked in (False, True):
        space = problem(with_fast_math=is_asked).space
        tried = [name for name, places in zip(ALL, space.places, strict=True) if len(places) > 1]
        assert {*FAST_MATH} & {*tried} == ({*FAST_MATH} if is_asked else set())
        assert 30 <= len(tried) <= len(ALL)
        assert not space.default.any()


def test_candidates_are_what_the_compiler_and_the_server_take():
    found = problem()
    drawn = found.space.random(np.random.default_rng(0), 64)
    for one in drawn:
        assert found.key(found.read(found.written(one))) == found.key(one)
    again = found.candidates(found.configurations(drawn))
    assert np.array_equal(again, drawn)
    unknown = drawn.copy()
    unknown[1:, 0] = 99
    again = found.candidates(found.configurations(unknown))
    assert np.array_equal(again[0], drawn[0]) and again[1:] == [None] * 63
    for others in (ConfigFeatures(np.zeros((2, 1, 3))), Layouts(np.zeros((2, 1, 3, 6)))):
        assert found.candidates(others) == [None, None]
    passes = {"xla_disable_hlo_passes=cse": True, "xla_disable_hlo_passes=algsimp": True}
    options = found.options(found.read({**passes, "xla_cpu_prefer_vector_width": 512}))
    assert options == {
        "xla_cpu_prefer_vector_width": 512,
        "xla_disable_hlo_passes": "algsimp,cse",
    }
    # An option that this version lacks keeps its column, so that all versions share a space.
    assert found.configurations(drawn).columns == len(ALL)


def test_the_first_candidates_have_every_value_once():
    found = problem()
    start = [found.default, found.space.random(np.random.default_rng(1), 1)[0]]
    for known in (start[:1], start):
        drawn = found.strategy(Settings(), np.random.default_rng(0), 8, 4, known).ask()
        assert len(drawn) == 11, "the first of all is the program as it is"
        new = drawn[len(known) :]
        for places, column in zip(found.space.places, new.T, strict=True):
            assert sorted(column[column > 0]) == list(places[1:])
        changed = (new > 0).sum(axis=1)
        assert changed.max() - changed.min() <= 1


def test_later_candidates_combine_the_fastest():
    found = problem()
    strategy = found.strategy(Settings(), np.random.default_rng(0), 8, 4, [found.default])
    first = strategy.ask()
    costs = np.full(len(first), 2.0)
    costs[2:6] = 0.5
    strategy.update(first, costs)
    is_theirs = (strategy.ask()[:, None] == first[2:6]).any(axis=1)
    assert 0 < (~is_theirs).sum(axis=1).mean() < 3, "about two options are drawn anew"


def test_programs_are_told_apart_by_counts_of_their_graphs():
    program = Program.from_function(lambda x: jax.numpy.sort(x) + 1, np.ones(8, np.float32))
    features = features_of(program.module)
    assert features["sort"] == 1 and features["add"] >= 1 and features["largest"] == 8
    assert len(features) <= 32


@pytest.mark.parametrize("tolerance", [1e-3, 10.0])
def test_results_may_differ_by_the_tolerance_of_the_user(capsys, monkeypatch, tolerance):
    measured = []
    measure = host.measure_programs

    def kept(worker, loader, *arguments):
        measured.append(loader.tolerance)
        return measure(worker, loader, *arguments)

    monkeypatch.setattr("hlorank_tune.xla.compiler.measure_programs", kept)
    arguments = "model.py:other", "--without-model", "--measurements=2", "--out=out"
    code, _, _ = run_command(capsys, "options", *arguments, f"--tolerance={tolerance}")
    assert code == 0 and set(measured) == {tolerance}


def test_a_search_begins_with_what_gained_for_other_programs(capsys, tmp_path):
    folder = tmp_path / "kept"
    folder.mkdir()
    programs = runpy.run_path("model.py")

    def found(client, name, **options):
        """Others have found options with which a program takes no time."""
        found = OptionProblem(programs[name])
        fastest = found.configurations([found.read(options)])
        client.report_measurements(found.graph, Adapt("a board", fastest, [1e-9]))
        return options

    def measured(address, name, count, out):
        """What a search with the server measured."""
        arguments = f"model.py:{name}", f"--measurements={count}", f"--out={out}"
        shared = f"--endpoint={address}", "--target=a board"
        code, printed, err = run_command(capsys, "options", *arguments, *shared)
        assert (code, err) == (0, "") and "are kept for later searches on 'a board'" in printed
        return [row for row in rows(out) if "status" in row]

    with run_empty_server(folder) as server, Client(server.address) as client:
        # Of another graph, whose configurations are none of options.
        space = Space("tiles", {"m": [1, 2]})
        client.report_measurements(space.graph, Adapt("a board", space.configurations(), [1, 2]))
        measured(server.address, "program", 20, "first")
        gained = found(client, "program", xla_cpu_prefer_vector_width=128)
        second = measured(server.address, "other", 6, "second")
        kept = client.list_measurements("a board").graphs
        own = found(client, "other", xla_cpu_prefer_vector_width=512)
        third = measured(server.address, "other", 3, "third")
    assert sorted(len(graph.seconds) for graph in kept) == [2, 6, 21]
    assert second[0]["candidate"] == {}
    assert second[1]["candidate"] == gained
    assert third[1]["candidate"] == own, "its own come before those of others"
