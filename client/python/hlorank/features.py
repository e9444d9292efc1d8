"""TpuGraphs' feature arrays as a message, normalized so that every client sends equal bytes."""

from typing import Any

import numpy as np

from hlorank.errors import GraphFileError
from hlorank.messages import GraphFeatures

FEATURES = 140
_OPCODES = 120
_SEQUENCES = ((31, 6), (95, 4), (101, 4), (134, 6))
"""First column and width of the lists that the pad value fills up."""


def feature_message(node_opcode: np.ndarray, node_feat: np.ndarray, edge_index: np.ndarray) -> Any:
    """Returns ``GraphFeatures`` of opcodes [n], features [n, 140] and edges [m, 2].

    Raises:
        GraphFileError: if a shape differs or a value is out of range.
    """
    nodes = len(node_opcode)
    _check_shape("node_opcode", node_opcode, (nodes,))
    _check_shape("node_feat", node_feat, (nodes, FEATURES))
    _check_shape("edge_index", edge_index, (len(edge_index), 2))
    opcodes = _within("node_opcode", node_opcode, 1 << 8)
    edges = _within("edge_index", edge_index, 1 << 32)
    # Opcodes beyond the table mean "unknown"; edges are a set; -0 becomes 0.
    opcodes = np.where(opcodes > _OPCODES, 0, opcodes).astype(np.uint8)
    edges = np.unique(edges, axis=0) if len(edges) else edges
    features = node_feat.astype("<f4") + np.float32(0)
    return GraphFeatures(
        node_opcode=opcodes.tobytes(),
        node_feat=features.astype("<f4").tobytes(),
        edge_index=edges.ravel().tolist(),
        pad_value=_pad_value(features),
    )


def _pad_value(features: np.ndarray) -> int:
    """Returns -1 if -1 fills up every list and at least one value is filled up, else 0."""
    has_pad = False
    for first, width in _SEQUENCES:
        values = features[:, first : first + width]
        used = (values >= 0).cumprod(axis=1, dtype=bool)
        if not (used | (values == -1)).all():
            return 0
        has_pad |= not used.all()
    return -1 if has_pad else 0


def _check_shape(name: str, array: np.ndarray, expected: tuple[int, ...]) -> None:
    if array.shape != expected:
        raise GraphFileError(f"{name} has shape {list(array.shape)}, expected {list(expected)}")


def _within(name: str, array: np.ndarray, end: int) -> np.ndarray:
    """Checks that an array holds integers from 0 to ``end - 1``, and returns them."""
    numbers = array.astype(np.int64)
    if (numbers != array).any() or numbers.min(initial=0) < 0 or numbers.max(initial=0) >= end:
        raise GraphFileError(f"{name} has values that are not integers from 0 to {end - 1}")
    return numbers
