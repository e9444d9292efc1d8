"""What people send to a pool of processes arrives, or one line says what to do instead."""

import copy
import pickle
from dataclasses import fields, is_dataclass
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import grpc
import numpy as np
import pytest
from google.protobuf.message import Message
from servers import DATA

import hlorank
from hlorank import (
    Adapt,
    AsyncClient,
    AsyncExperience,
    AsyncSpaceSearch,
    Client,
    Experience,
    Fallback,
    Fusions,
    Graph,
    Layouts,
    ModelReference,
    Result,
    Space,
    SpaceSearch,
    Tiles,
)
from hlorank.answers.ranking import Ranking
from hlorank.spaces.policy import HeldOut, Leaf
from hlorank.tuners.proposals import Proposals
from hlorank.wire.messages import RankConfigsResponse

SPACE = Space("gemm", {"tile": [1, 2, 4], "flag": ["-O2", "-O3"]}, constraints=lambda one: True)
ANSWER = RankConfigsResponse(
    graph_hash=bytes(32), ranking=[1, 0], ranking_scores=[0.5, 1.0], scored_configs=2
)
EXAMPLES = {
    "Adapt": Adapt("a board", SPACE.configurations(), [1.0] * 6),
    "BatchTooLongError": hlorank.BatchTooLongError(3, 2),
    "ConfigFeatures": SPACE.configurations(),
    "Fallback": Fallback("TPE goes on"),
    "Fusions": Fusions([[1]]),
    "Graph": Graph.from_file(DATA / "measured/tile_kernels.pb"),
    "Layouts": Layouts(np.full((1, 1, 18), -1)),
    "ModelReference": ModelReference("model", 2),
    "Policy": hlorank.Policy("gemm", (SPACE[0],), Leaf((0,)), HeldOut(2, 1.0, 1.0, 0.0), 1.0),
    "Ranking": Ranking(ANSWER),
    "Result": Result(failure="crash"),
    "Space": SPACE,
    "Tiles": Tiles(output_bounds=[[1]]),
}


def connected():
    """What has a connection, by the name of its class."""
    client, asynchronous = Client("127.0.0.1:1"), AsyncClient("127.0.0.1:1")
    of_graph = (SPACE.graph, SPACE.configurations, "a board")
    return {
        "Client": client,
        "AsyncClient": asynchronous,
        "SpaceSearch": SpaceSearch(client, SPACE, "a board"),
        "AsyncSpaceSearch": AsyncSpaceSearch(asynchronous, SPACE, "a board"),
        "Experience": Experience(client, *of_graph),
        "AsyncExperience": AsyncExperience(asynchronous, *of_graph),
        "RankStream": object.__new__(hlorank.RankStream),
        "AsyncRankStream": object.__new__(hlorank.AsyncRankStream),
        "Proposals": Proposals(client, "a board"),
    }


def example(kind: Any) -> Any:
    """A value of a type, such as an answer with a value in each field."""
    origin, parts = get_origin(kind), get_args(kind)
    if getattr(kind, "__name__", "") in EXAMPLES:
        return EXAMPLES[kind.__name__]
    if origin is Literal:
        return parts[0]
    if origin in (tuple, list, dict):
        return origin()
    if isinstance(kind, UnionType):
        return example(parts[0])
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{each.name: example(hints[each.name]) for each in fields(kind) if each.init})
    simple = {int: 1, float: 0.5, str: "text", bytes: bytes(32), bool: True}
    return simple[kind] if kind in simple else np.ones(2, np.float32)


def value_of(name: str) -> Any:
    public = getattr(hlorank, name)
    if name in EXAMPLES or not isinstance(public, type):
        return EXAMPLES.get(name, public)
    if issubclass(public, hlorank.RefusedError):
        code = grpc.StatusCode.UNAVAILABLE
        return public(code, "away", reason="R", fields=("a",), retry_after=0.5)
    return public("words") if issubclass(public, Exception) else example(public)


def content(value: Any) -> Any:
    """What is compared: most classes compare by identity."""
    if isinstance(value, np.ndarray):
        return value.dtype, value.tolist()
    if isinstance(value, Message):
        return value.SerializeToString()
    if isinstance(value, list | tuple):
        return [content(each) for each in value]
    if isinstance(value, dict):
        return {key: content(each) for key, each in value.items()}
    if type(value).__module__.startswith("hlorank"):
        words = str(value) if isinstance(value, Exception) else ""
        return type(value), words, content(vars(value))
    return value


@pytest.mark.parametrize("name", sorted(set(hlorank.__all__) - connected().keys()))
@pytest.mark.parametrize("take", [lambda one: pickle.loads(pickle.dumps(one)), copy.deepcopy])
def test_a_copy_has_the_same_content(take, name):
    value = value_of(name)
    assert content(take(value)) == content(value)


@pytest.mark.parametrize("take", [pickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("name", connected())
def test_what_has_a_connection_has_no_copy(name, take):
    words = f"a {name} has a connection, which has no copy: send .* and make a Client in each"
    with pytest.raises(hlorank.ArgumentError, match=words):
        take(connected()[name])
