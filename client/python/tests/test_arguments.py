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
from hlorank.tuners.proposals import Proposals
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
CLIENT = partial(Client, NOWHERE, retries=0, timeout=1)
TLS = grpc.ssl_channel_credentials()


def _constructors():
    """Every function of the package that is called with what a caller has, and its arguments."""
    return {
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
        Graph.from_feature_set: {
            "feature_set": "loops",
            "node_features": [[1.0]],
            "edge_index": [],
        },
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
        Adapt: {"target": "a board"},
        ModelReference: {"name": "model"},
        Fallback: {"way": "TPE goes on"},
        Kept: {"target": "a board"},
        Lease: {"worker": "a"},
        DecisionKey: {"namespace": "space", "key": b"key", "target": "a board"},
        Evidence: {},
        Worker: {"server": NOWHERE, "space": SPACE, "target": "a board", "measure": len},
        SPACE.write: {"path": "/nowhere/space.json"},
        SPACE.encoded: {"configuration": 0},
        Result: {"seconds": 1.0},
        **{
            kind: {"client": client, "graph": GRAPH, "convert": Tiles, "kept": "a board"}
            for kind, client in ((Experience, CLIENT()), (AsyncExperience, AsyncClient(NOWHERE)))
        },
        ModelReference.parse: {"given": "model@1"},
    }


KEY = DecisionKey("space", b"key", "a board")
CALLS = {
    "put_graph": {"graph": GRAPH},
    "rank": {"graph": GRAPH, "configurations": TILES},
    "rank_stream": {"graph": GRAPH},
    "suggest": {"graph": GRAPH, "candidates": TILES},
    "report_measurements": {"graph": GRAPH, "measurements": Adapt("a board")},
    "list_measurements": {},
    "get_measured_graph": {"target": "a board", "graph_hash": bytes(32)},
    "delete_measurements": {"target": "a board", "graph_hash": bytes(32)},
    "delete_target": {"target": "a board"},
    "delete_reporter": {"reporter": "a tuner"},
    "list_models": {},
    "get_model": {"name": "model"},
    "renew_leases": {"graph": GRAPH, "target": "a board", "lease": Lease("a"), "granted": []},
    "decide": {"key": KEY},
    "propose": {"key": KEY, "value": b"{}"},
    "list_decisions": {},
    "compare_models": {"first": "a@1", "second": "a@2"},
}


SEARCH = {"space": SPACE, "target": "a board"}
"""Of ``search``, which calls nothing."""
SEARCH_CALLS = {
    "suggest": {},
    "report": {"configuration": 0, "seconds": 1.0},
    "rank": {},
    "predicted_best": {},
    "renew": {},
    "flush": {},
    "fastest": {},
    "export": {},
    "run": {"measure": lambda configuration: 1.0, "measurements": 1},
}


def refuses_only_with_errors_of_the_package(function, right):
    """Calls a function with each argument of each wrong kind, beside the right ones."""
    for name in inspect.signature(function).parameters:
        for value in WRONG:
            what = f"{function.__qualname__}({name}=) of a {type(value).__name__}"
            try:
                function(**(right | {name: value}))
            except HlorankError as error:
                assert str(error), what
            except Exception as error:
                pytest.fail(f"{what} raises {type(error).__name__}: {error}")


@pytest.mark.parametrize("function", _constructors(), ids=lambda f: f.__qualname__)
def test_wrong_arguments_of_a_constructor_are_errors_of_the_package(
    function, tmp_path, monkeypatch
):
    # Some are names of files that ``Space.write`` can write.
    monkeypatch.chdir(tmp_path)
    refuses_only_with_errors_of_the_package(function, _constructors()[function])


@pytest.mark.parametrize("method", [*CALLS, "search"])
def test_wrong_arguments_of_a_call_are_errors_of_the_package(method):
    with CLIENT() as client:
        right = SEARCH if method == "search" else CALLS[method]
        refuses_only_with_errors_of_the_package(getattr(client, method), right)


@pytest.mark.parametrize("method", SEARCH_CALLS)
def test_wrong_arguments_of_a_call_of_a_search_are_errors_of_the_package(method):
    with CLIENT() as client:
        called = getattr(client.search(**SEARCH), method)
        refuses_only_with_errors_of_the_package(called, SEARCH_CALLS[method])


def test_every_call_of_both_clients_is_in_this_test():
    for client in (Client, AsyncClient):
        public = {name for name, _ in inspect.getmembers(client, callable) if name[0] != "_"}
        assert public - {"close", "search"} == CALLS.keys()
    for search in (SpaceSearch, AsyncSpaceSearch):
        public = {name for name, _ in inspect.getmembers(search, callable) if name[0] != "_"}
        assert public == SEARCH_CALLS.keys()


def test_every_constructor_of_the_package_is_in_this_test():
    takes = {function.__qualname__.partition(".")[0] for function in _constructors()}
    answers = {
        *("Adaptation", "BatchScores", "CachedGraph", "ComparedMean", "Comparison", "Confidence"),
        *("RelatedSource", "Reporter", "Policy"),
        *("ConfigurableNode", "FeatureSet", "GraphMeasurements", "KernelTime"),
        *(
            "MeasurementsPage",
            "Model",
            "Predicted",
            "RankStream",
            "AsyncRankStream",
            "Ranking",
        ),
        *("Reported", "Reuse", "Suggestion", "Suggestions", "Timings", "Warning", "Task", "Unit"),
        *("SpaceSearch", "AsyncSpaceSearch"),
        *("DecideAnswer", "Decision", "DecisionsPage", "NearDecision"),
        *("GrantedLease", "LeaseState", "SearchState"),
        *("Configurations", "FAILURES"),
    }
    errors = {n for n in hlorank.__all__ if n.endswith("Error")}
    assert takes | answers | errors == set(hlorank.__all__)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: CLIENT().rank(GRAPH, [[1]]),
            r"configurations is \[\[1\]\] \(list\), expected Lay",
        ),
        (lambda: CLIENT().rank("g.pb", TILES), "graph is 'g.pb', expected a hlorank.Graph"),
        (lambda: CLIENT().rank(GRAPH, TILES, top_k=-1), r"top_k is -1 \(int\), expected a whole"),
        (lambda: CLIENT().rank(GRAPH, TILES, timeout="5s"), "timeout is '5s', expected seconds"),
        (lambda: CLIENT().suggest(GRAPH, TILES, source="all"), "source is 'all', expected one of"),
        (lambda: CLIENT().get_measured_graph("a", None), "graph_hash is None: a graph has its"),
        (
            lambda: CLIENT().list_measurements(reported_before=datetime(2026, 5, 1)),
            "expected a datetime after 1970 with a zone",
        ),
        (lambda: Client(NOWHERE, message_bytes="64MiB"), "message_bytes is '64MiB'"),
        (lambda: Client(NOWHERE, retries=-1), "retries is -1"),
        (lambda: Client(NOWHERE, credentials="ca.pem"), "credentials is 'ca.pem', expected grpc"),
        (lambda: Graph.from_hlo_text(b"HloModule m"), "text is b'HloModule m'.* takes bytes"),
        (lambda: Graph.from_hlo_proto("m.pb"), "module is 'm.pb'.*from_file takes a path"),
        (lambda: Graph.from_file(None), "path is None, expected a path"),
        (lambda: Adapt("a", TILES, ["fast"]), r"seconds\[0\] is 'fast', expected seconds"),
        (lambda: Adapt("a", failures=["wrong"]), "the failure is 'wrong', expected one of comp"),
        (lambda: Lease(""), "worker is ''"),
        (lambda: Lease("a", ttl=0), "ttl is 0"),
        (lambda: Lease("a", budget=-1), "budget is -1"),
        (lambda: CLIENT().decide(b"key"), "key is"),
        (lambda: CLIENT().propose(KEY, "text"), "value is 'text'"),
        (lambda: CLIENT().propose(KEY, b"{}", {"runs": 1}), "evidence is"),
        (lambda: Agreement(CLIENT(), "triton", "t", on_away="later"), "on_away is 'later'"),
        (lambda: Agreement(CLIENT(), "triton", "t", group=3), "group is 3"),
        (lambda: ModelReference("a", "1"), "version is '1', expected a whole number"),
        *(
            (partial(CLIENT().suggest, GRAPH, TILES, count=count), f"count is {count}")
            for count in (0, 65, True, np.float32(1))
        ),
        (lambda: CLIENT().get_model("a", 0), "version is 0"),
        (lambda: CLIENT().search(SPACE, ""), "target is ''"),
        (lambda: CLIENT().search({"tile": [1]}, "t"), "space is .* expected a hlorank.Space"),
        (lambda: CLIENT().search(**SEARCH, other_targets="b"), "other_targets is 'b'"),
        (lambda: CLIENT().search(**SEARCH, seed=-1), "seed is -1"),
        (lambda: CLIENT().search(**SEARCH).report(0), "either seconds or a failure"),
        (lambda: CLIENT().search(**SEARCH).report(0, 1.0, failure="crash"), "either seconds or"),
        (lambda: CLIENT().search(**SEARCH).report(0, failure="fire"), "the failure is 'fire'"),
        (lambda: Worker(NOWHERE, SPACE, "a board", 1.0), "measure is 1"),
        (lambda: CLIENT().search(**SEARCH).suggest(0), "count is 0"),
        (lambda: CLIENT().search(**SEARCH).report(0, 0), "seconds is 0"),
        (lambda: CLIENT().search(**SEARCH).report(0, np.float32(0)), r"seconds is 0\.0 \(float32"),
        (lambda: CLIENT().search(**SEARCH).run(len, 2.0), r"measurements is 2\.0"),
        (lambda: Client(NOWHERE, connect_timeout=0), "connect_timeout is 0"),
        (lambda: Fallback("TPE goes on", pause=-1), "pause is -1"),
        (lambda: Fallback("TPE goes on", needs="numpy"), "needs is 'numpy'"),
        (
            lambda: Fallback("a model goes on", needs=["numpy", "no_such_model"]),
            "needs no_such_model, which is not installed: pip",
        ),
        (lambda: Client(f"http://{NOWHERE}", credentials=TLS), f"connect to https://{NOWHERE}"),
        (lambda: Result(1.0, repeats=0), "repeats is 0"),
        (lambda: Proposals(CLIENT(), "a board", top_k=True), "top_k is True"),
    ],
)
def test_the_error_names_the_argument_its_value_and_what_is_expected(call, message):
    with pytest.raises(ArgumentError, match=message) as refused:
        call()
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
    client = CLIENT()
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
