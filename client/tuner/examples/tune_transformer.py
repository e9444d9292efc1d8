"""Finds faster layouts of a transformer layer; needs a server at 127.0.0.1:7070."""

import jax
import jax.numpy as jnp

from hlorank_tune import search
from hlorank_tune.xla import LayoutCompiler, Program


def layer(x, qkv, out, up, down, heads=4):
    """Attention, then two dense layers."""
    batch, length, width = x.shape
    q, k, v = jnp.moveaxis((x @ qkv).reshape(batch, length, 3, heads, width // heads), 2, 0)
    weights = jax.nn.softmax(jnp.einsum("bqhc,bkhc->bhqk", q, k))
    x = x + jnp.einsum("bhqk,bkhc->bqhc", weights, v).reshape(batch, length, width) @ out
    return x + jax.nn.gelu(x @ up) @ down


shapes = [(8, 128, 256), (256, 768), (256, 256), (256, 1024), (1024, 256)]
arguments = [jax.random.normal(jax.random.key(0), shape) / 16 for shape in shapes]
program = Program.from_function(layer, *arguments)

if __name__ == "__main__":
    print(search(LayoutCompiler(program), "127.0.0.1:7070", "tuned/transformer"))
