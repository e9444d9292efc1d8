"""Messages, and their vectors that all clients share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measured import features_graph, read_graphs
from servers import DATA

from hlorank import ConfigFeatures, Configurations, Fusions, Graph, Layouts, Tiles
from hlorank.wire import messages

VECTORS = json.loads((DATA / "client_vectors.json").read_text())


def graph_of(path: Path) -> Graph:
    """The graph of a file, or its first one."""
    if path.suffix == ".npz":
        return features_graph(path)
    return read_graphs(path)[0].graph if "measured" in path.parts else Graph.from_file(path)


def sent(configurations: Configurations) -> str:
    return configurations.wire.SerializeToString().hex()


def route_of_module(length: int) -> str:
    """The route of bytes that count to 250 again and again, as in BLAKE3's own test vectors."""
    return Graph.from_hlo_proto(bytes(index % 251 for index in range(length))).route


RESULTS: dict[str, tuple[str, Callable[..., str]]] = {
    "modules": ("route", route_of_module),
    "files": ("route", lambda file: graph_of(DATA / file).route),
    "layouts": ("sent", lambda values: sent(Layouts(np.array(values)))),
    "tiles": ("sent", lambda **bounds: sent(Tiles(**bounds))),
    "tile_features": ("sent", lambda features: sent(Tiles.from_features(features))),
    "fusions": ("sent", lambda fused: sent(Fusions(fused))),
    "node_features": ("sent", lambda values: sent(ConfigFeatures(values))),
    "feature_graphs": (
        "route",
        lambda feature_set, node_features, edges: (
            Graph.from_feature_set(feature_set, node_features, edges).route
        ),
    ),
    "spaces": (
        "route",
        lambda feature_set, parameters, instance: (
            Graph.from_feature_set(feature_set, config_columns=parameters, instance=instance).route
        ),
    ),
}
"""What the client makes of each kind of case. Digests and hashes of feature sets are those of a
server, which the Rust tests compute."""


@pytest.mark.parametrize("kind", RESULTS)
def test_what_is_sent_is_what_every_client_sends(kind):
    result, make = RESULTS[kind]
    assert VECTORS[kind]
    for case in VECTORS[kind]:
        given: dict[str, Any] = {
            key: value for key, value in case.items() if key not in ("name", "hash", result)
        }
        assert make(**given) == case[result], case.get("name")


def test_every_kind_of_case_is_compared():
    assert VECTORS.keys() - {"feature_sets"} == RESULTS.keys()


def test_messages_and_enums_have_the_names_of_the_proto_files():
    assert messages.Graph(task=messages.Task.TASK_TILE).task == messages.Task.Value("TASK_TILE")
    with pytest.raises(AttributeError, match="no message or enum"):
        messages.Nothing  # noqa: B018
