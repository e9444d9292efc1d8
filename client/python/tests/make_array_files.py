"""Writes ``tests/data/arrays.zip``, npz files that are read or refused, and ``arrays.json``."""

import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

DATA = Path(__file__).parents[3] / "tests/data"
Arrays = dict[str, Any]


def plain() -> Arrays:
    """Returns a graph of five nodes with two slots and three configurations."""
    features = np.zeros((5, 140), np.float32)
    features[:, 3] = np.arange(5)
    features[:, 31:37] = -1
    layouts = np.full((3, 2, 18), -1, np.float32)
    layouts[1, :, :2] = [1, 0]
    layouts[2, 1, :2] = [0, 1]
    return {
        "node_opcode": np.array([63, 63, 34, 63, 34], np.uint8),
        "node_feat": features,
        "edge_index": np.array([[2, 0], [2, 1], [4, 2], [4, 3]]),
        "node_config_ids": np.array([2, 4]),
        "node_config_feat": layouts,
        "config_runtime": np.array([30, 20, 10]),
    }


PLAIN = plain()


def as_type(kind: Any, *names: str) -> Arrays:
    return {name: PLAIN[name].astype(kind) for name in names}


def taken() -> Iterator[tuple[str, Arrays]]:
    """Yields what changes the plain file into another form of it."""
    yield "plain", {}
    numbers = ("node_opcode", "edge_index", "node_config_ids", "config_runtime")
    for kind in ("f8", "i4", ">i8", ">f4", "u2"):
        yield f"integers_{kind.replace('>', 'big_')}", as_type(kind, *numbers)
    for kind in ("f8", "f2", ">f4", "i2"):
        yield f"features_{kind.replace('>', 'big_')}", as_type(kind, "node_feat")
        yield f"layouts_{kind.replace('>', 'big_')}", as_type(kind, "node_config_feat")
    yield "layouts_i1", as_type("i1", "node_config_feat")
    by_tensor = PLAIN["node_config_feat"].reshape(3, 2, 3, 6)
    yield "layouts_by_tensor", {"node_config_feat": by_tensor}
    yield "column_major", {name: np.asfortranarray(array) for name, array in PLAIN.items()}
    objects = np.array([None, {}], object)
    yield "other_arrays", {"note": np.array("a text"), "objects": objects}


REFUSED: list[tuple[str, Arrays, str]] = [
    (
        "edges_by_end",
        {"edge_index": PLAIN["edge_index"].T},
        "has shape [2, 4], expected [edges, 2], each edge as consumer and producer; transpose it",
    ),
    ("edges_flat", {"edge_index": np.arange(8)}, "has shape [8], expected [edges, 2]"),
    ("opcodes_as_column", {"node_opcode": np.zeros((5, 1))}, "[5, 1], expected [nodes]"),
    ("opcodes_missing", {"node_opcode": None}, "node_opcode"),
    ("features_missing", {"node_feat": None}, "array `node_feat`: missing"),
    ("features_short", {"node_feat": np.zeros((5, 139))}, "[5, 139], expected [5, 140]"),
    ("features_complex", as_type("c8", "node_feat"), "type `<c8` (complex numbers)"),
    ("features_text", as_type("U3", "node_feat"), "(text), expected integers or floats"),
    (
        "layouts_of_objects",
        as_type(object, "node_config_feat"),
        "array `node_config_feat`: has type `|O` (Python objects), expected integers or floats",
    ),
    (
        "layouts_of_other_slots",
        {"node_config_feat": np.zeros((3, 4, 18))},
        "expected [configurations, 2, 18], because the graph has 2 slots",
    ),
    ("layouts_half", {"node_config_feat": np.full((3, 2, 18), 0.5)}, "not a whole number"),
    ("times_short", {"config_runtime": np.arange(2)}, "has shape [2], expected [3]"),
    ("times_as_column", {"config_runtime": np.ones((3, 1))}, "[3, 1], expected [3]"),
    ("times_in_seconds", {"config_runtime": np.full(3, 0.5)}, "not a whole number"),
    ("features_not_finite", {"node_feat": np.full((5, 140), np.inf)}, "finite"),
    ("edge_of_no_node", {"edge_index": np.array([[9, 0]])}, "edge"),
    ("no_graph", dict.fromkeys(PLAIN) | {"x": np.zeros(1)}, "x.npy"),
]
"""What changes the plain file into one that is refused, and what every message says."""


def npz(changed: Arrays) -> bytes:
    kept = {key: array for key, array in (PLAIN | changed).items() if array is not None}
    file = io.BytesIO()
    np.savez_compressed(file, **kept)
    return file.getvalue()


def main() -> None:
    cases = []
    with zipfile.ZipFile(DATA / "arrays.zip", "w") as files:
        for name, changed in taken():
            files.writestr(f"{name}.npz", npz(changed))
            cases.append({"file": f"{name}.npz", "times": [30, 20, 10]})
        files.writestr("no_times.npz", npz({"config_runtime": None}))
        cases.append({"file": "no_times.npz", "times": [0, 0, 0]})
        for name, changed, message in REFUSED:
            files.writestr(f"{name}.npz", npz(changed))
            cases.append({"file": f"{name}.npz", "message": message})
    (DATA / "arrays.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
