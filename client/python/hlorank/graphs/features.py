"""Feature arrays of graphs as messages, normalized so that every client sends equal bytes."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
from numpy.typing import ArrayLike

from hlorank.checks.arguments import several, text, wrong
from hlorank.checks.arrays import array_of, finite_floats
from hlorank.checks.errors import ArgumentError, GraphFileError
from hlorank.wire.defaults import FEATURE_BYTES, INSTANCE_FEATURES, TARGET_BYTES
from hlorank.wire.messages import FeatureGraph, GraphFeatures, InstanceFeature

Instance = str | Mapping[str, int | float | bool | str]
"""What tells graphs of equal columns apart: a text, or features from which a server learns."""

FEATURES = 140
_OPCODES = 120
_SEQUENCES = ((31, 6), (95, 4), (101, 4), (134, 6))
"""First column and width of the lists that the pad value fills up."""
_TRANSPOSED = "; transpose it, and swap the rows if they are source and target"
_NAME = re.compile(r'(?!.*["\\])[ -~]{1,128}')
"""Of a feature set, of a column of one, or of a feature of an instance."""
_NAME_WORDS = '1 to 128 printable ASCII characters without `"` and `\\`'


@dataclass(frozen=True)
class FeatureSet:
    """A named list of columns, which the manifest of a model or a call defines."""

    name: str
    node_features: tuple[str, ...]
    """Names of the columns of a node, in order."""
    config_features: tuple[str, ...]
    """Names of the columns of a node in a configuration, in order."""


def feature_message(
    node_opcode: np.ndarray, node_feat: np.ndarray, edge_index: np.ndarray, operands: np.ndarray
) -> GraphFeatures:
    """Returns ``GraphFeatures`` of opcodes [n], features [n, 140], edges [m, 2] and operands [k].

    Raises:
        GraphFileError: if a shape differs or a value is out of range.
    """
    if node_opcode.ndim != 1:
        raise GraphFileError(f"node_opcode has shape {list(node_opcode.shape)}, expected [nodes]")
    nodes = len(node_opcode)
    _check_shape("node_feat", node_feat, (nodes, FEATURES))
    opcodes = _within("node_opcode", node_opcode, 1 << 8)
    # Opcodes beyond the table mean "unknown"; -0 becomes 0.
    opcodes = np.where(opcodes > _OPCODES, 0, opcodes).astype(np.uint8)
    edges = _edges(edge_index, nodes)
    features = finite_floats(node_feat, "node_feat", ("node", "column"), GraphFileError)
    return GraphFeatures(
        node_opcode=opcodes.tobytes(),
        node_feat=features.tobytes(),
        edge_index=edges.ravel().tolist(),
        pad_value=_pad_value(features),
        operands=_within("operands", operands.ravel(), 1 << 32).tolist(),
    )


def described_set(
    name: str, node_columns: Sequence[str] = (), config_columns: Sequence[str] = ()
) -> FeatureSet:
    """Checks the names of a feature set and of its columns; no columns leave them to a model.

    Raises:
        GraphFileError: if a name is invalid, or a column is named twice.
    """
    _check_name(text(name, "feature_set", "the name of a feature set"), "the feature set")
    return FeatureSet(
        name,
        _column_names(node_columns, "node_columns"),
        _column_names(config_columns, "config_columns"),
    )


def feature_graph_message(
    feature_set: FeatureSet,
    node_features: ArrayLike | None,
    edge_index: ArrayLike,
    instance: Instance,
) -> FeatureGraph:
    """Returns ``FeatureGraph`` of a set, columns [n, columns], edges [m, 2] and an instance.

    Without ``node_features``, it has one node.

    Raises:
        GraphFileError: if a shape is invalid, a value is out of range, the names are not those of
            the columns, or the instance is too long.
        ArgumentError: if a feature of the instance cannot be used.
    """
    axes = ("node", "column")
    features = np.zeros((1, 0), "<f4")
    # A file of such a graph has an array of this shape.
    if node_features is not None and getattr(node_features, "shape", None) != features.shape:
        features = finite_floats(node_features, "node_features", axes, GraphFileError)
    nodes, columns = features.shape
    names = feature_set.node_features
    if (names or feature_set.config_features) and len(names) != columns:
        raise GraphFileError(f"node_columns has {len(names)} names for {columns} columns of a node")
    if names and not feature_set.config_features:
        raise GraphFileError("node_columns are given, but config_columns are not")
    described = _instance_features(instance) if isinstance(instance, Mapping) else []
    if described and nodes != 1:
        raise ArgumentError(f"instance has features, but the graph has {nodes} nodes instead of 1")
    expected = "text, or a mapping of names to numbers and texts"
    name = "" if isinstance(instance, Mapping) else text(instance, "instance", expected)
    length = len(name.encode())
    if length > TARGET_BYTES:
        raise GraphFileError(f"instance has {length} bytes, at most {TARGET_BYTES} are possible")
    return FeatureGraph(
        feature_set=feature_set.name,
        nodes=nodes,
        node_features=features.tobytes(),
        edges=_edges(edge_index, nodes).ravel().tolist(),
        node_columns=names,
        config_columns=feature_set.config_features,
        instance=name,
        instance_features=described,
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
    # The mapping may be any class of the caller.
    try:
        given = dict(instance.items())
    except Exception as error:
        raise wrong("instance", instance, "a mapping of names to numbers and texts") from error
    if len(given) > INSTANCE_FEATURES:
        limit = f"at most {INSTANCE_FEATURES} are possible"
        raise ArgumentError(f"instance has {len(given):,} features, {limit}")
    for name in given:
        if not _NAME.fullmatch(text(name, "the name of an instance's feature")):
            raise wrong("the name of an instance's feature", name, _NAME_WORDS)
    return [_instance_feature(name, given[name]) for name in sorted(given)]


def _instance_feature(name: str, value: object) -> InstanceFeature:
    what = f"instance[{name!r}]"
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, str):
        length = len(text(plain, what).encode())
        if length > FEATURE_BYTES:
            raise ArgumentError(f"{what} has {length} bytes, at most {FEATURE_BYTES} are possible")
        return InstanceFeature(name=name, text=plain)
    expected = "a finite number, a boolean or text"
    if not isinstance(plain, int | float):
        raise wrong(what, value, expected)
    try:
        number = float(plain)
    except OverflowError as error:
        raise wrong(what, value, expected) from error
    if not isfinite(number):
        raise wrong(what, value, expected)
    return InstanceFeature(name=name, number=number + 0.0)  # 0 in place of -0


def _column_names(names: Sequence[str], what: str) -> tuple[str, ...]:
    columns = several(names, what, "names of columns")
    for number, name in enumerate(columns):
        _check_name(text(name, f"{what}[{number}]", "the name of a column"), f"column {number}")
    if len(set(columns)) < len(columns):
        raise GraphFileError(f"{what} names a column twice: {', '.join(columns)}")
    return tuple(columns)


def _check_name(name: str, of: str) -> None:
    if not _NAME.fullmatch(name):
        raise GraphFileError(f"the name of {of} is {name!r}, expected {_NAME_WORDS}")


def _edges(edge_index: ArrayLike, nodes: int) -> np.ndarray:
    """Checks edges and returns them as a set: i64 [m, 2] in ascending order."""
    edges = array_of(edge_index, "edge_index", GraphFileError)
    if edges.size == 0:
        return np.zeros((0, 2), np.int64)
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise GraphFileError(
            f"edge_index has shape {list(edges.shape)}, expected [edges, 2], each edge as consumer "
            f"and producer{_TRANSPOSED if edges.shape[:1] == (2,) else ''}"
        )
    return np.unique(_within("edge_index", edges, nodes), axis=0)


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
    if array.dtype.kind not in "biuf":
        raise GraphFileError(f"{name} has type {array.dtype}, expected integers")
    with np.errstate(invalid="ignore"):  # NumPy's warning would precede the error about the value
        numbers = array.astype(np.int64)
    if (numbers != array).any() or numbers.min(initial=0) < 0 or numbers.max(initial=0) >= end:
        raise GraphFileError(f"{name} has values that are not integers from 0 to {end - 1}")
    return numbers
