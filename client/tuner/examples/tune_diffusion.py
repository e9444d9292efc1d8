"""Finds faster fusions of two steps of a diffusion; needs a server at 127.0.0.1:7070."""

import jax.numpy as jnp
import numpy as np

from hlorank_tune import search
from hlorank_tune.xla import FusionCompiler, Program

STEPS = 2


def diffusion(grid, conductivity):
    """A diffusion with a reaction."""
    for _ in range(STEPS):
        neighbours = sum(jnp.roll(grid, step, axis) for axis in range(3) for step in (-1, 1))
        flow = conductivity * (neighbours - 6 * grid)
        grid = grid + 0.1 * (flow + grid * (1 - grid) * jnp.tanh(grid))
    return grid


draw = np.random.default_rng(0)
grids = [draw.standard_normal((64, 64, 64)).astype(np.float32) for _ in range(2)]
program = Program.from_function(diffusion, *grids)

if __name__ == "__main__":
    print(search(FusionCompiler(program), "127.0.0.1:7070", "tuned/diffusion"))
