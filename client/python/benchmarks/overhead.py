"""Measures the cost of a call in the client; `make bench ARGS=clients` compares it with Rust.

Prints one JSON document of seconds: ``calls`` has the client's time minus the server's time of
each call, ascending; ``packing`` is the shortest time to pack the configurations.
"""

import argparse
import json
import sys
import time
from pathlib import Path

import numpy as np

from hlorank import Client, Graph, Layouts

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from measured import read_graphs


def _call(client: Client, graph: Graph, layouts: Layouts) -> float:
    start = time.perf_counter()
    ranking = client.rank(graph, layouts, top_k=10)
    return time.perf_counter() - start - ranking.timings.total


def _packing(values: np.ndarray) -> float:
    start = time.perf_counter()
    _ = Layouts(values).serialized
    return time.perf_counter() - start


def main() -> None:
    """Calls a server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address", default="127.0.0.1:7070")
    parser.add_argument("--graph", required=True, help="a file of measured layouts")
    parser.add_argument(
        "--configs",
        type=int,
        default=1000,
        help="configurations per call",
    )
    parser.add_argument("--calls", type=int, default=300)
    arguments = parser.parse_args()

    [measured] = read_graphs(arguments.graph)
    values = measured.configurations.values()
    values = values[np.arange(arguments.configs) % len(values)]
    layouts = Layouts(values)
    with Client(arguments.address) as client:
        for _ in range(20):
            client.rank(measured.graph, layouts, top_k=10)
        calls = sorted(_call(client, measured.graph, layouts) for _ in range(arguments.calls))
    packing = min(_packing(values) for _ in range(20))
    print(json.dumps({"calls": calls, "packing": packing}))


if __name__ == "__main__":
    main()
