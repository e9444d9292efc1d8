"""Feature arrays of graphs as messages, normalized so that every client sends equal bytes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arguments import number, several, text
from hlorank.checks.arrays import array_of, floats
from hlorank.checks.errors import GraphFileError
from hlorank.wire.messages import FeatureGraph, GraphFeatures, InstanceFeature

Instance = str | Mapping[str, int | float | bool | str]
"""What tells graphs of equal columns apart: a text, or features from which a server learns."""

_OPCODES = 120
_SEQUENCES = ((31, 6), (95, 4), (101, 4), (134, 6))
"""First column and width of the lists that the pad value fills up."""
_TRANSPOSED = "; transpose it, and swap the rows if they are source and target"


@dataclass(frozen=True)
class FeatureSet:
    """A named list of columns, which the manifest of a model or a call defines."""

    name: str
    node_features: tuple[str, ...]
    """Names of the columns of a node, in order."""
    config_features: tuple[str, ...]
    """Names of the columns of a node in a configuration, in order."""


def feature_message(
    node_opcode: ArrayLike, node_feat: ArrayLike, edge_index: ArrayLike, operands: ArrayLike
) -> GraphFeatures:
    """Returns ``GraphFeatures`` of opcodes [n], features [n, 140], edges [m, 2] and operands [k].

    Raises:
        GraphFileError: if an array has other axes, or a number cannot be sent.
    """
    opcodes = _within("node_opcode", node_opcode, 1 << 8)
    # Opcodes beyond the table mean "unknown"; -0 becomes 0.
    opcodes = np.where(opcodes > _OPCODES, 0, opcodes).astype(np.uint8)
    features = floats(node_feat, "node_feat", ("node", "column"), GraphFileError)
    return GraphFeatures(
        node_opcode=opcodes.tobytes(),
        node_feat=features.tobytes(),
        edge_index=_edges(edge_index),
        pad_value=_pad_value(features),
        operands=_within("operands", operands, 1 << 32).ravel().tolist(),
    )


def feature_graph_message(
    feature_set: str,
    node_features: ArrayLike | None,
    edge_index: ArrayLike,
    node_columns: Sequence[str],
    config_columns: Sequence[str],
    instance: Instance,
) -> FeatureGraph:
    """Returns ``FeatureGraph`` of a set, columns [n, columns], edges [m, 2] and an instance.

    Without ``node_features``, it has one node. The server checks names and numbers.

    Raises:
        GraphFileError: if an array has other axes, or a number cannot be sent.
        ArgumentError: if something has another type.
    """
    features = np.zeros((1, 0), "<f4")
    # A file of such a graph has an array of this shape.
    if node_features is not None and getattr(node_features, "shape", None) != features.shape:
        features = floats(node_features, "node_features", ("node", "column"), GraphFileError)
    expected = "text, or a mapping of names to numbers and texts"
    return FeatureGraph(
        feature_set=text(feature_set, "feature_set", "the name of a feature set"),
        nodes=len(features),
        node_features=features.tobytes(),
        edges=_edges(edge_index),
        node_columns=_column_names(node_columns, "node_columns"),
        config_columns=_column_names(config_columns, "config_columns"),
        instance="" if isinstance(instance, Mapping) else text(instance, "instance", expected),
        instance_features=_instance_features(instance) if isinstance(instance, Mapping) else [],
    )


def instance_of(graph: FeatureGraph) -> Instance:
    """Returns the instance of a graph as callers name it: text, or the features, if it has some."""
    described: dict[str, float | str] = {}
    for each in graph.instance_features:
        is_whole = each.number.is_integer() and abs(each.number) < 1 << 53
        number = int(each.number) if is_whole else each.number
        described[each.name] = each.text if each.WhichOneof("value") == "text" else number
    return described or graph.instance


def _instance_features(instance: Mapping[str, object]) -> list[InstanceFeature]:
    """Returns the features by name, so that every order of them is the same message."""
    names = [text(name, "the name of an instance's feature") for name in instance]
    return [_instance_feature(name, instance[name]) for name in sorted(names)]


def _instance_feature(name: str, value: object) -> InstanceFeature:
    what = f"instance[{name!r}]"
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        return InstanceFeature(name=name, text=text(plain, what))
    sent = number(int(plain) if isinstance(plain, bool) else plain, what, "a number or text")
    return InstanceFeature(name=name, number=sent + 0.0)  # 0 in place of -0


def _column_names(names: Sequence[str], what: str) -> list[str]:
    columns = enumerate(several(names, what, "names of columns"))
    return [text(name, f"{what}[{place}]", "the name of a column") for place, name in columns]


def _edges(edge_index: ArrayLike) -> list[int]:
    """Returns edges as a set in ascending order, one number after the other."""
    edges = _within("edge_index", edge_index, 1 << 32)
    if edges.size and edges.shape[1:] != (2,):
        raise GraphFileError(
            f"edge_index has shape {list(edges.shape)}, expected [edges, 2], each edge as consumer "
            f"and producer{_TRANSPOSED if edges.shape[:1] == (2,) else ''}"
        )
    numbers: list[int] = np.unique(edges.reshape(-1, 2), axis=0).ravel().tolist()
    return numbers


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


def _within(name: str, values: ArrayLike, end: int) -> np.ndarray:
    """Checks that an array holds integers from 0 to ``end - 1``, and returns them."""
    array = array_of(values, name, GraphFileError)
    if array.dtype.kind not in "biuf":
        raise GraphFileError(f"{name} has type {array.dtype}, expected integers")
    with np.errstate(invalid="ignore"):  # NumPy's warning would precede the error about the value
        numbers = array.astype(np.int64)
    if (numbers != array).any() or numbers.min(initial=0) < 0 or numbers.max(initial=0) >= end:
        raise GraphFileError(f"{name} has values that are not integers from 0 to {end - 1}")
    return numbers
