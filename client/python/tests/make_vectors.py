"""Writes ``tests/data/client_vectors.json``: what every client sends for the same input.

``PYTHONPATH=. python tests/make_vectors.py``, in the folder of the package. The Rust client holds
the same file, so that what is wrong here does not pass there.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3
from measured import features_graph, read_graphs

from hlorank import ConfigFeatures, Configurations, Fusions, Graph, Layouts, Space, Tiles

DATA = Path(__file__).resolve().parents[3] / "tests" / "data"
VECTORS = DATA / "client_vectors.json"

LENGTHS = (0, 1, 48, 56, 57, 1015, 1016, 1017, 2040, 2041, 3064, 5112, 16384, 31737, 102400)
"""Of modules, around the ends of BLAKE3's blocks and chunks; a length of 8 bytes goes before."""
FILES = (
    "hlo/cnn_train.before_opt.hlo_module.pb",
    "hlo/cnn_train.before_opt.hlo.txt",
    "hlo/cnn_train.before_opt.features.npz",
    "hlo/fuzz_all_columns.features.npz",
    "measured/layout_random_window_reversed.pb",
    "measured/tile_kernels.pb",
)


def graph_of(path: Path) -> Graph:
    """The graph of a file, or its first one."""
    if path.suffix == ".npz":
        return features_graph(path)
    return read_graphs(path)[0].graph if "measured" in path.parts else Graph.from_file(path)


def pattern(length: int) -> bytes:
    """Bytes that count to 250 again and again, as in BLAKE3's own test vectors."""
    return bytes(index % 251 for index in range(length))


def config_batch(configurations: Configurations) -> bytes:
    """The ``ConfigBatch`` that is sent."""
    return configurations.wire.SerializeToString()


def layout_cases() -> Iterable[tuple[str, np.ndarray]]:
    """Values [configs, slots, 18]."""
    draw = np.random.default_rng(2026)
    yield "everything is left to the compiler", np.full((1, 2, 18), -1)
    yield "an entry of every value", np.arange(18).reshape(1, 1, 18) % 7 - 1
    yield "drawn from three entries", draw.integers(-1, 6, (3, 18))[draw.integers(0, 3, (8, 4))]
    yield "more entries than a byte numbers", draw.integers(-1, 6, (300, 1, 18))
    few = np.repeat(draw.integers(-1, 6, (1, 10, 18)), 6, axis=0)
    few[1:, 2], few[3:, 7] = draw.integers(-1, 6, 18), draw.integers(-1, 6, 18)
    yield "few changes to the first", few
    many = np.repeat(draw.integers(-1, 6, (1, 4, 18)), 4, axis=0)
    many[[0, 1, 2, 3], [0, 1, 2, 3], 0] = (many[0, :, 0] + 2) % 7 - 1
    yield "too many changes to the first", many


def tile_cases() -> Iterable[tuple[str, dict[str, list[list[int]]]]]:
    """Bounds, by the name of their list."""
    largest = (1 << 31) - 1
    yield "output alone", {"output_bounds": [[8, 128], [16, 64], [8, 128]]}
    yield (
        "all three lists",
        {
            "kernel_bounds": [[3, 1, 24, 3], [1, 1, 1, 1]],
            "output_bounds": [[12, 4], [0, -1]],
            "input_bounds": [[7], [largest]],
        },
    )
    yield "no bounds", {"output_bounds": [[], []]}
    yield "lists of any length", {"kernel_bounds": [[], [2]], "output_bounds": [[1, 2, 3], [4]]}
    yield "a bound of more than 32 bits", {"output_bounds": [[largest + 1], [1]]}


def feature_cases() -> Iterable[tuple[str, np.ndarray]]:
    """TpuGraphs' features [configs, 24]."""
    uniform = Tiles(kernel_bounds=[[3, 1, 24, 3], [1, 2, 3, 4]], output_bounds=[[5, 0], [0, 6]])
    yield "a zero at an end", uniform.features()
    ragged = Tiles(kernel_bounds=[[3], [1, 2]], input_bounds=[[], [1, 2, 3, 4, 5, 6]])
    yield "lists of any length", ragged.features()


def fusion_cases() -> Iterable[tuple[str, np.ndarray]]:
    """Bits [configs, slots]."""
    draw = np.random.default_rng(2026)
    yield "one slot", np.array([[0], [1]])
    yield "a byte that is not full", draw.integers(0, 2, (5, 11))
    base = draw.integers(0, 2, (1, 170))
    neighbours = np.repeat(base, 6, axis=0)
    neighbours[np.arange(1, 6), draw.integers(0, 170, 5)] ^= 1
    yield "few changes to the first", neighbours


SETS = (
    ("loops", ["depth"], ["tile"]),
    ("halide-adams2019-3", ["points computed", "log(flops)"], ["unroll", "~x[0] <= 1"]),
)
"""Feature sets: name, columns of nodes, and columns of configurations."""


def feature_graph_cases() -> Iterable[tuple[str, str, list[list[float]], list[list[int]]]]:
    """Name, feature set, columns [nodes, columns] and edges [edges, 2]."""
    yield "one node", "loops", [[1.5]], []
    columns = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    yield "two columns and edges", "loops", columns, [[1, 0], [2, 0]]
    yield (
        "edges in any order, one twice, and a zero with a sign",
        "halide-adams2019-3",
        [[0.5, -0.0, 1e30], [-2.25, 0.0, 3.0], [7.0, 8.0, 9.0]],
        [[2, 1], [1, 0], [2, 1]],
    )


def space_cases() -> Iterable[tuple[str, Space]]:
    """Flat spaces of parameters, with and without an instance."""
    yield "a space", Space("gemm", {"block_m": [16, 32], "vectorize": [False, True]})
    instance = "1024, carré"
    parameters = {"block_m": [16], "vectorize": [1]}
    yield "an instance of it", Space("gemm", parameters, instance=instance)
    features = {"n": 1024, "k": 0.1, "dtype": "bf16, carré", "transposed": True, "beta": -0.0}
    yield "an instance with features", Space("gemm", parameters, instance=features)


def graph_hash(graph: Graph) -> str:
    """The hash that a server gives a graph of a feature set (graph/README.md)."""
    sent = graph.whole().feature_graph
    name, edges = sent.feature_set.encode(), np.array(sent.edges, "<u4")
    columns = len(sent.node_features) // 4 // sent.nodes
    counts = np.array([sent.nodes, len(edges) // 2, columns], "<u8")
    parts = [b"hlorank-feature-graph", b"\1\0\0\0", len(name).to_bytes(8, "little"), name]
    parts += [counts.tobytes(), sent.node_features, edges.tobytes()]
    if sent.config_columns:
        columns = [sent.feature_set, list(sent.node_columns), list(sent.config_columns)]
        parts += [b"description", bytes.fromhex(set_digest(columns))]
    if sent.instance:
        instance = sent.instance.encode()
        parts += [b"instance", len(instance).to_bytes(8, "little"), instance]
    if sent.instance_features:
        parts += [b"instance features", len(sent.instance_features).to_bytes(8, "little")]
    for each in sent.instance_features:
        is_text = each.WhichOneof("value") == "text"
        value = each.text.encode() if is_text else np.float64(each.number).tobytes()
        parts += [len(each.name).to_bytes(8, "little"), each.name.encode()]
        parts += [b"text  " if is_text else b"number", len(value).to_bytes(8, "little"), value]
    return blake3(b"".join(parts)).hexdigest()


def set_digest(columns: Sequence[Any]) -> str:
    """The digest of a feature set: its name, columns of nodes, and columns of configurations."""
    return blake3(json.dumps(columns, separators=(",", ":")).encode()).hexdigest()


def node_feature_cases() -> Iterable[tuple[str, list[list[list[float]]]]]:
    """Columns [configs, nodes, columns]."""
    draw = np.random.default_rng(2026)
    yield "one column", [[[1.0], [2.0]], [[1.0], [1.0]]]
    yield "rows that differ", draw.integers(-99, 99, (3, 2, 3)).astype(float).tolist()
    first, second = [0.25, 1.0, 2.0, -3.5], [8.0, 0.0, 0.0, 1.0]
    signed = [8.0, 0.0, -0.0, 1.0]
    yield (
        "rows that are equal, and a zero with a sign",
        [[first, first, first], [first, first, signed], [second, second, second]],
    )


def feature_set_vectors() -> dict[str, list[dict[str, Any]]]:
    """The vectors of feature sets."""
    graphs = [
        (case, Graph.from_feature_set(case[1], case[2], case[3])) for case in feature_graph_cases()
    ]
    names = ("name", "node_features", "config_features")
    return {
        "feature_sets": [
            {
                **dict(zip(names, columns, strict=True)),
                "digest": set_digest(columns),
            }
            for columns in SETS
        ],
        "feature_graphs": [
            {
                "name": name,
                "feature_set": feature_set,
                "node_features": node_features,
                "edges": edges,
                "route": graph.route,
                "hash": graph_hash(graph),
            }
            for (name, feature_set, node_features, edges), graph in graphs
        ],
        "spaces": [
            {
                "name": name,
                "feature_set": space.name,
                "parameters": sorted(space.parameters),
                "instance": space.instance,
                "route": space.graph.route,
                "hash": graph_hash(space.graph),
            }
            for name, space in space_cases()
        ],
        "node_features": [
            {"name": name, "values": values, "sent": config_batch(ConfigFeatures(values)).hex()}
            for name, values in node_feature_cases()
        ],
    }


def vectors() -> dict[str, list[dict[str, Any]]]:
    """Every vector, by what it is about."""
    return {
        "modules": [
            {"length": length, "route": Graph.from_hlo_proto(pattern(length)).route}
            for length in LENGTHS
        ],
        "files": [{"file": file, "route": graph_of(DATA / file).route} for file in FILES],
        "layouts": [
            {"name": name, "values": values.tolist(), "sent": config_batch(Layouts(values)).hex()}
            for name, values in layout_cases()
        ],
        "tiles": [
            {"name": name, **bounds, "sent": config_batch(Tiles(**bounds)).hex()}
            for name, bounds in tile_cases()
        ],
        "tile_features": [
            {
                "name": name,
                "features": features.tolist(),
                "sent": config_batch(Tiles.from_features(features)).hex(),
            }
            for name, features in feature_cases()
        ],
        "fusions": [
            {"name": name, "fused": fused.tolist(), "sent": config_batch(Fusions(fused)).hex()}
            for name, fused in fusion_cases()
        ],
        **feature_set_vectors(),
    }


def main() -> None:
    """Writes the file, one vector a line."""
    sections = []
    for name, cases in vectors().items():
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
        sections.append(f'"{name}": [\n{lines}\n]')
    VECTORS.write_text("{\n" + ",\n".join(sections) + "\n}\n")


if __name__ == "__main__":
    main()
