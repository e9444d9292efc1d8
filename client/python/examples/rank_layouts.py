"""Ranks layouts of a small convolutional network; needs jax, and a server at 127.0.0.1:7070."""

import jax
import numpy as np

from hlorank import Client, Graph, Layouts


def network(image, kernel, weights):
    """A convolution, and one dense layer."""
    features = jax.nn.relu(jax.lax.conv(image, kernel, (1, 1), "SAME"))
    return features.reshape(len(image), -1) @ weights


arrays = [(8, 3, 32, 32), (16, 3, 3, 3), (16 * 32 * 32, 10)]
shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in arrays]
graph = Graph.from_lowered(jax.jit(network).lower(*shapes))
draw = np.random.default_rng(0)
with Client("127.0.0.1:7070") as client:
    slots = client.put_graph(graph).configurable_nodes
    values = np.full((1000, len(slots), 3, 6), -1, np.int8)  # number 0 is the compiler's default
    for config in values[1:]:
        for slot, node in zip(config, slots, strict=True):
            for tensor, rank in zip(slot, node.tensor_ranks, strict=False):
                tensor[:rank] = draw.permutation(rank)
    ranking = client.rank(graph, Layouts(values), top_k=5)
print("slots:", [f"{node.opcode} {node.name} {list(node.dimensions)}" for node in slots])
for config, score in zip(ranking.best, ranking.best_scores, strict=True):
    print(f"{config:4} {score:9.4f}", [slot[slot >= 0].tolist() for slot in values[config, :, 0]])
print(f"by {ranking.model} in {ranking.timings.total * 1e3:.1f} ms; {ranking.reuse}")
