"""Whatever callers pass, an error of the package names it: nothing else is raised."""

import asyncio
import inspect
from datetime import datetime
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest
from library_words import assert_own_words
from servers import DATA

import hlorank
from hlorank import (
    Adapt,
    ArgumentError,
    AsyncClient,
    AsyncExperience,
    AsyncSpaceSearch,
    Client,
    ClosedError,
    ConfigFeatures,
    ConfigurationError,
    DecisionKey,
    Evidence,
    Experience,
    Fallback,
    Fusions,
    Graph,
    HlorankError,
    Kept,
    Layouts,
    Lease,
    MissingFileError,
    ModelReference,
    Result,
    Space,
    SpaceSearch,
    Tiles,
    Worker,
)
from hlorank.checks.arrays import array_of
from hlorank.worker.agreement import Agreement

NOWHERE = "127.0.0.1:1"


WRONG = [
    *(None, True, 0, -1, 1 << 80, 0.5, float("nan"), float("inf"), -float("inf"), 1j),
    *("", "text", "\ud800", "a\0b", b"", b"bytes", bytearray(b"x"), Path("nowhere"), object()),
    *([], [[]], [None], ["text"], [[1], [1, 2]], [-1], [1 << 80], {}, {"a": 1}, {1}, (), range(3)),
    *(np.int8(1), np.float32("nan"), np.bool_(True), np.uint64(1 << 63), np.str_("text")),
    *(np.zeros(0), np.zeros((0, 0, 0)), np.zeros(3), np.zeros((2, 2)), np.full((1, 1, 18), 9)),
    *(np.full((1, 24), np.nan), np.full((2, 2, 2), np.inf), np.full((1, 1, 18), -1e300)),
    *(np.array(["text"]), np.array([None]), np.array([1j]), np.array("2026", "datetime64[Y]")),
    *(np.array(1), np.ones((3, 2), bool), np.ma.masked_all((2, 2)), np.zeros(2, [("a", "f4")])),
    *(int, len, lambda: 1, (item for item in "ab"), memoryview(b"view")),
    *(print, NotImplemented, ..., iter([1]), np.float16(2), 10**400, -(10**400)),
]
GRAPH = Graph.from_feature_set("loops", np.ones((2, 1)), [[0, 1]])
TILES = Tiles(output_bounds=[[1]])
SPACE = Space("gemm", {"block": [1, 2]})
KEY = DecisionKey("space", b"key", "a board")
CLIENT = Client(NOWHERE, retries=0, timeout=1)
SEARCH = CLIENT.search(SPACE, "a board")
AGREEMENT = partial(Agreement, CLIENT, "triton", "a board")
OF_GRAPH = {"graph": GRAPH, "convert": Tiles, "kept": "a board"}
RIGHT = {
    Client: {"address": NOWHERE},
    AsyncClient: {"address": NOWHERE},
    Graph: {"message": None},
    Graph.from_lowered: {"lowered": None},
    Graph.from_hlo_proto: {"module": b"module"},
    Graph.from_hlo_text: {"text": "HloModule m"},
    Graph.from_features: {
        "node_opcode": np.ones(1),
        "node_feat": np.ones((1, 140)),
        "edge_index": [],
        "task": "layout",
    },
    Graph.from_feature_set: {"feature_set": "loops", "node_features": [[1.0]], "edge_index": []},
    Graph.from_file: {"path": DATA / "measured/tile_kernels.pb"},
    Layouts: {"values": np.full((1, 1, 18), -1)},
    Tiles: {"output_bounds": [[1]]},
    Tiles.from_features: {"config_feat": np.zeros((1, 24))},
    Fusions: {"fused": [[1]]},
    ConfigFeatures: {"config_features": np.ones((1, 1, 1))},
    ConfigFeatures.from_rows: {"rows": [[1.0]], "indices": [[0]]},
    Space: {"name": "gemm", "parameters": {"block": [1, 2]}},
    Space.from_configs: {"name": "gemm", "configs": [{"block": 1}]},
    SPACE.number: {"configuration": 0},
    SPACE.configurations: {"chosen": [0]},
    SPACE.write: {"path": "/nowhere/space.json"},
    SPACE.encoded: {"configuration": 0},
    Adapt: {"target": "a board"},
    ModelReference: {"name": "model"},
    ModelReference.parse: {"given": "model@1"},
    Fallback: {"way": "TPE goes on"},
    Kept: {"target": "a board"},
    Lease: {"worker": "a"},
    DecisionKey: {"namespace": "space", "key": b"key", "target": "a board"},
    Evidence: {},
    Result: {"seconds": 1.0},
    Worker: {"server": NOWHERE, "space": SPACE, "target": "a board", "measure": len},
    Experience: {"client": CLIENT, **OF_GRAPH},
    AsyncExperience: {"client": AsyncClient(NOWHERE), **OF_GRAPH},
    CLIENT.put_graph: {"graph": GRAPH},
    CLIENT.rank: {"graph": GRAPH, "configurations": TILES},
    CLIENT.rank_stream: {"graph": GRAPH},
    CLIENT.suggest: {"graph": GRAPH, "candidates": TILES},
    CLIENT.report_measurements: {"graph": GRAPH, "measurements": Adapt("a board")},
    CLIENT.list_measurements: {},
    CLIENT.get_measured_graph: {"target": "a board", "graph_hash": bytes(32)},
    CLIENT.delete_measurements: {"target": "a board", "graph_hash": bytes(32)},
    CLIENT.delete_target: {"target": "a board"},
    CLIENT.delete_reporter: {"reporter": "a tuner"},
    CLIENT.list_models: {},
    CLIENT.get_model: {"name": "model"},
    CLIENT.renew_leases: {
        "graph": GRAPH,
        "target": "a board",
        "lease": Lease("a"),
        "granted": [],
    },
    CLIENT.decide: {"key": KEY},
    CLIENT.propose: {"key": KEY, "value": b"{}"},
    CLIENT.list_decisions: {},
    CLIENT.compare_models: {"first": "a@1", "second": "a@2"},
    CLIENT.search: {"space": SPACE, "target": "a board"},
    SEARCH.suggest: {},
    SEARCH.report: {"configuration": 0, "seconds": 1.0},
    SEARCH.rank: {},
    SEARCH.predicted_best: {},
    SEARCH.renew: {},
    SEARCH.flush: {},
    SEARCH.fastest: {},
    SEARCH.export: {},
    SEARCH.run: {"measure": lambda configuration: 1.0, "measurements": 1},
}
"""Every function of the package that is called with what a caller has, and right arguments."""


@pytest.mark.parametrize("function", RIGHT, ids=lambda function: function.__qualname__)
def test_wrong_arguments_are_errors_of_the_package(function, tmp_path, monkeypatch):
    # Some are names of files that ``Space.write`` can write.
    monkeypatch.chdir(tmp_path)
    for name in inspect.signature(function).parameters:
        for value in WRONG:
            what = f"{function.__qualname__}({name}=) of a {type(value).__name__}"
            try:
                function(**(RIGHT[function] | {name: value}))
            except HlorankError as error:
                assert str(error), what
            except Exception as error:
                pytest.fail(f"{what} raises {type(error).__name__}: {error}")


ANSWERS = {
    *("Adaptation", "BatchScores", "CachedGraph", "ComparedMean", "Comparison", "Confidence"),
    *("ConfigurableNode", "Configurations", "DecideAnswer", "Decision", "DecisionsPage"),
    *("FAILURES", "FeatureSet", "GrantedLease", "GraphMeasurements", "KernelTime", "LeaseState"),
    *("MeasurementsPage", "Model", "NearDecision", "Policy", "Predicted", "Ranking", "RankStream"),
    *("AsyncRankStream", "RelatedSource", "Reported", "Reporter", "Reuse", "SearchState"),
    *("SpaceSearch", "AsyncSpaceSearch", "Suggestion", "Suggestions", "Task", "Timings", "Unit"),
    "Warning",
}
"""What callers are given, and do not make."""


def test_every_function_of_the_package_is_in_this_test():
    for owner, kinds in (
        (CLIENT, (Client, AsyncClient)),
        (SEARCH, (SpaceSearch, AsyncSpaceSearch)),
    ):
        tested = {call.__name__ for call in RIGHT if getattr(call, "__self__", None) is owner}
        for kind in kinds:
            public = {name for name, _ in inspect.getmembers(kind, callable) if name[0] != "_"}
            assert public - {"close"} == tested
    takes = {function.__qualname__.partition(".")[0] for function in RIGHT}
    errors = {name for name in hlorank.__all__ if name.endswith("Error")}
    assert set(hlorank.__all__) - takes - errors == ANSWERS - takes


@pytest.mark.parametrize(
    ("function", "changed", "message"),
    [
        (
            CLIENT.rank,
            {"configurations": [[1]]},
            r"configurations is \[\[1\]\] \(list\), expect",
        ),
        (CLIENT.rank, {"graph": "g.pb"}, "graph is 'g.pb', expected a hlorank.Graph"),
        (CLIENT.rank, {"top_k": -1}, r"top_k is -1 \(int\), expected a whole"),
        (CLIENT.rank, {"timeout": "5s"}, "timeout is '5s', expected seconds"),
        (CLIENT.suggest, {"source": "all"}, "source is 'all', expected one of"),
        *(
            (CLIENT.suggest, {"count": count}, f"count is {count}")
            for count in (0, 65, True, np.float32(1))
        ),
        (CLIENT.get_measured_graph, {"graph_hash": None}, "graph_hash is None: a graph has its"),
        (
            CLIENT.list_measurements,
            {"reported_before": datetime(2026, 5, 1)},
            "expected a datetime after 1970 with a zone",
        ),
        (CLIENT.get_model, {"version": 0}, "version is 0"),
        (CLIENT.decide, {"key": b"key"}, "key is"),
        (CLIENT.propose, {"value": "text"}, "value is 'text'"),
        (CLIENT.propose, {"evidence": {"runs": 1}}, "evidence is"),
        (CLIENT.search, {"target": ""}, "target is ''"),
        (CLIENT.search, {"space": {"tile": [1]}}, "space is .* expected a hlorank.Space"),
        (CLIENT.search, {"other_targets": "b"}, "other_targets is 'b'"),
        (CLIENT.search, {"seed": -1}, "seed is -1"),
        (SEARCH.report, {"seconds": None}, "either seconds or a failure"),
        (SEARCH.report, {"failure": "crash"}, "either seconds or a failure"),
        (SEARCH.report, {"seconds": None, "failure": "fire"}, "the failure is 'fire'"),
        (SEARCH.report, {"seconds": 0}, "seconds is 0"),
        (SEARCH.report, {"seconds": np.float32(0)}, r"seconds is 0\.0 \(float32"),
        (SEARCH.suggest, {"count": 0}, "count is 0"),
        (SEARCH.run, {"measurements": 2.0}, r"measurements is 2\.0"),
        (Client, {"message_bytes": "64MiB"}, "message_bytes is '64MiB'"),
        (Client, {"retries": -1}, "retries is -1"),
        (Client, {"connect_timeout": 0}, "connect_timeout is 0"),
        (Client, {"credentials": "ca.pem"}, "credentials is 'ca.pem', expected grpc"),
        (
            Client,
            {"address": f"http://{NOWHERE}", "credentials": grpc.ssl_channel_credentials()},
            f"connect to https://{NOWHERE}",
        ),
        (Graph.from_hlo_text, {"text": b"HloModule m"}, "text is b'HloModule m'.* takes bytes"),
        (Graph.from_hlo_proto, {"module": "m.pb"}, "module is 'm.pb'.*from_file takes a path"),
        (Graph.from_hlo_proto, {"task": "kernel"}, "'kernel', expected one of tile, layout, fus"),
        (Graph.from_file, {"path": None}, "path is None, expected a path"),
        (Adapt, {"seconds": ["fast"]}, r"seconds\[0\] is 'fast', expected seconds"),
        (Adapt, {"failures": ["wrong"]}, "the failure is 'wrong', expected one of comp"),
        (Lease, {"worker": ""}, "worker is ''"),
        (Lease, {"ttl": 0}, "ttl is 0"),
        (Lease, {"budget": -1}, "budget is -1"),
        (ModelReference, {"version": "1"}, "version is '1', expected a whole number"),
        (AGREEMENT, {"on_away": "later"}, "on_away is 'later'"),
        (AGREEMENT, {"group": 3}, "group is 3"),
        (Worker, {"measure": 1.0}, "measure is 1"),
        (Result, {"repeats": 0}, "repeats is 0"),
        (Fallback, {"pause": -1}, "pause is -1"),
        (Fallback, {"needs": "numpy"}, "needs is 'numpy'"),
        (
            Fallback,
            {"needs": ["numpy", "no_such_model"]},
            "needs no_such_model, which is not installed: pip",
        ),
    ],
)
def test_the_error_names_the_argument_its_value_and_what_is_expected(function, changed, message):
    with pytest.raises(ArgumentError, match=message) as refused:
        function(**(RIGHT.get(function, {}) | changed))
    assert isinstance(refused.value, ValueError) and isinstance(refused.value, TypeError)


def test_a_file_that_does_not_exist_is_named_where_the_caller_names_it(tmp_path):
    for path in (tmp_path / "none.pb", tmp_path):
        with pytest.raises(MissingFileError, match="cannot be read: ") as refused:
            Graph.from_file(path)
        assert str(path) in str(refused.value)
    assert isinstance(refused.value, FileNotFoundError)


def test_numbers_and_times_may_be_numpy_scalars():
    client = Client(
        NOWHERE,
        connect_timeout=np.int64(1),
        timeout=np.float32(0.5),
        message_bytes=np.int32(4 << 20),
        retries=np.int64(0),
    )
    assert client._timeout == 0.5 and client._message_bytes == 4 << 20
    for timeout in (np.float32(0.5), np.int64(1)):
        with pytest.raises(hlorank.UnavailableError):
            client.rank(GRAPH, TILES, top_k=np.int32(1), timeout=timeout)


def test_a_call_of_a_closed_client_is_an_error_of_the_package():
    client = Client(NOWHERE)
    client.close()
    for call in (client.list_models, lambda: client.rank_stream(GRAPH)):
        with pytest.raises(ClosedError, match="the client is closed"):
            call()

    async def ask():
        client = AsyncClient(NOWHERE)
        await client.close()
        with pytest.raises(ClosedError):
            await client.list_models()
        with pytest.raises(ClosedError):
            await client.rank_stream(GRAPH)

    asyncio.run(ask())


class OtherArray:
    """An array of another library that does not become one of NumPy, and says why in its words."""

    def __array__(self, *_, **__):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")


class Tensor(OtherArray):
    def detach(self):
        return self


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[1], [1, 2]], "its lists differ in length"),
        (Tensor(), r"pass x\.detach\(\)\.cpu\(\)\.numpy\(\)"),
        (OtherArray(), "does not convert to one; pass an array of NumPy"),
        ([OtherArray()], "does not convert to one; pass an array of NumPy"),
    ],
)
def test_what_is_no_array_says_what_it_is(values, words):
    with pytest.raises(ConfigurationError, match=f"values is not an array: .*{words}") as refused:
        array_of(values, "values", ConfigurationError)
    assert_own_words(str(refused.value))
