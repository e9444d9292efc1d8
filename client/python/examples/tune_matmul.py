"""Finds faster tiles of a tiled matrix product; needs a server at 127.0.0.1:7070."""

from itertools import product

import jax
import jax.numpy as jnp
from jax import lax

from hlorank.tune import Tile, TiledKernel, tune

M, N, K = 256, 384, 512


def tiled(tile):
    """The product in tiles of the output, each a sum over tiles of the reduced dimension."""
    (rows, columns), (depth,) = tile.output, tile.reduction

    def run(x, y):
        def block(row, column):
            def step(k, total):
                left = lax.dynamic_slice(x, (row, k * depth), (rows, depth))
                right = lax.dynamic_slice(y, (k * depth, column), (depth, columns))
                return total + left @ right

            return lax.fori_loop(0, K // depth, step, jnp.zeros((rows, columns)))

        def write(n, out):
            start = n // (N // columns) * rows, n % (N // columns) * columns
            return lax.dynamic_update_slice(out, block(*start), start)

        return lax.fori_loop(0, M // rows * (N // columns), write, jnp.zeros((M, N)))

    return run


lengths = (128, 64, 32, 16, 8)
tiles = [Tile((m, n), (k,)) for m, n, k in product(lengths, lengths, lengths)]
arguments = [jax.random.normal(jax.random.key(0), shape) for shape in ((M, K), (K, N))]
kernel = TiledKernel("matmul", lambda x, y: x @ y, tiled, arguments, tiles)

if __name__ == "__main__":
    run = tune(kernel, "127.0.0.1:7070", "tuned/matmul")
    print(run, run.winner.candidate)
