"""Small programs, and searches of them that do not wait for a quiet machine."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import jax
import numpy as np

from hlorank import Client
from hlorank_tune import Settings, search, server
from hlorank_tune.command import main
from hlorank_tune.journal import RESULTS_FILE
from hlorank_tune.measure.rounds import Protocol
from hlorank_tune.xla import FusionCompiler, LayoutCompiler, Program
from hlorank_tune.xla.compiler import XlaCompiler

HASTE = Protocol(warmups=1, rounds=2, most_rounds=3, seconds=0.005, stretch_seconds=0.01, tries=0)
"""Short measurements, which are worth as much."""


def hurry(monkeypatch, compiler=XlaCompiler):
    """Searches measure in haste, and ask a server that is gone once."""
    for name in ("search", "confirm"):
        monkeypatch.setattr(compiler, name, HASTE)
    monkeypatch.setattr(
        server, "Client", lambda address, **more: Client(address, retries=0, **more)
    )


def run_command(capsys, *arguments):
    """The exit code of ``hlorank-tune``, and what was printed."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    return code, *capsys.readouterr()


def rows(folder):
    """The rows of a search's results."""
    lines = (Path(folder) / RESULTS_FILE).read_text().splitlines()
    return [json.loads(line) for line in lines]


def short(**changes):
    """Settings of a search that is short."""
    return replace(Settings(measurements=6, predictions=128, top_k=2), **changes)


def tune_layouts(program, *arguments, **more):
    """Searches for layouts of a program."""
    return search(LayoutCompiler(program), *arguments, **more)


def tune_fusions(program, *arguments, **more):
    """Searches for fusions of a program."""
    return search(FusionCompiler(program), *arguments, **more)


@cache
def convnet():
    """Two convolutions and a dot."""

    def network(image, first, second, weights):
        for kernel in (first, second):
            dimensions = ("NHWC", "HWIO", "NHWC")
            image = jax.lax.conv_general_dilated(
                image, kernel, (1, 1), "SAME", dimension_numbers=dimensions
            )
            image = jax.nn.relu(image)
        return image.reshape(image.shape[0], -1) @ weights

    shapes = ((2, 8, 8, 4), (3, 3, 4, 8), (3, 3, 8, 8), (512, 16))
    return Program.from_function(network, *_arrays(*shapes), name="convnet")


@cache
def product():
    """A single dot, with few layouts to choose."""
    return Program.from_function(lambda x, y: x @ y, *_arrays((6, 8), (8, 5)), name="product")


def _arrays(*shapes):
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@cache
def smoothing():
    """Shifted sums, a sigmoid and a reduction: two results and no dot."""

    def smooth(image, scale):
        shifted = sum(jax.numpy.roll(image, step, 1) for step in (-1, 1))
        mask = jax.nn.sigmoid((image - shifted) * scale)
        return mask * shifted + (1 - mask) * image, jax.numpy.exp(-shifted).sum(1)

    return Program.from_function(smooth, *_arrays((16, 24), (1,)))
