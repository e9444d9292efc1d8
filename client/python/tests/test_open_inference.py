"""Ranking by a client of the Open Inference Protocol, and what it gives beside our own client."""

import hashlib
import json
import re
from contextlib import contextmanager
from http.client import HTTPConnection

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from measured import read_graphs
from servers import DATA, REPOSITORY, run_server

from hlorank import Client, Fusions, Graph, Layouts, Tiles

grpc = pytest.importorskip("tritonclient.grpc", reason="needs tritonclient")
rest = pytest.importorskip("tritonclient.http", reason="needs geventhttpclient")
InferenceServerException = grpc.InferenceServerException

TYPES = {"int8": "INT8", "uint8": "UINT8", "int32": "INT32", "object": "BYTES"}
TOKEN = "of a client of another protocol"


def infer(client, model: str, /, **arrays):
    """Sends tensors: raw contents in gRPC, and JSON in the REST form."""
    is_rest = isinstance(client, rest.InferenceServerClient)
    protocol, form = (rest, {"binary_data": False}) if is_rest else (grpc, {})
    inputs = []
    for name, array in arrays.items():
        inputs.append(protocol.InferInput(name, list(array.shape), TYPES[array.dtype.name]))
        inputs[-1].set_data_from_numpy(array, **form)
    return client.infer(model, inputs)


def of_bytes(content: bytes) -> np.ndarray:
    return np.array([content], object)


def check_equal(found, expected) -> None:
    """The same bits, and not only the same numbers."""
    assert found.as_numpy("scores").tobytes() == expected.scores.tobytes()
    assert found.as_numpy("ranking").tolist() == expected.best.tolist()
    assert found.as_numpy("graph_hash").tobytes() == expected.graph_hash
    response = shown(found.get_response())
    assert response["model_name"] == expected.model.name
    assert response["model_version"] == str(expected.model.version)


@pytest.fixture(scope="module", params=[grpc, rest], ids=["grpc", "rest"])
def client(request, server):
    with request.param.InferenceServerClient(server) as client:
        yield client


@pytest.mark.parametrize("model", ["layout-xla-cpu", ""])
def test_the_layouts_of_the_demo_have_equal_scores(server, client, model):
    [measured] = read_graphs(DATA / "measured/layout_random_window_nchw_train.pb")
    layouts = measured.configurations.values()
    with Client(server) as own:
        expected = own.rank(measured.graph, measured.configurations, with_scores=True)
    layouts = layouts.reshape(*layouts.shape[:2], 18)
    graph = np.frombuffer(expected.graph_hash, np.uint8)
    check_equal(infer(client, model, graph_hash=graph, layouts=layouts), expected)


@pytest.mark.parametrize("form", ["hlo_module.pb", "hlo.txt"])
def test_a_graph_is_sent_as_a_module_or_as_text(server, client, form):
    if isinstance(client, rest.InferenceServerClient) and form == "hlo_module.pb":
        pytest.skip("BYTES are texts in JSON")
    file = DATA / f"hlo/mlp_train.before_opt.{form}"
    with Client(server) as own:
        graph = Graph.from_file(DATA / "hlo/mlp_train.before_opt.hlo_module.pb")
        slots = own.put_graph(graph).configurable_nodes
        draw = np.random.default_rng(1)
        layouts = np.full((300, len(slots), 3, 6), -1, np.int8)
        for config in layouts[1:]:
            for slot, node in zip(config, slots, strict=True):
                slot[0, : node.tensor_ranks[0]] = draw.permutation(node.tensor_ranks[0])
        layouts = layouts.reshape(*layouts.shape[:2], 18)
        expected = own.rank(graph, Layouts(layouts), with_scores=True)
    name = "hlo_text" if form == "hlo.txt" else "hlo_module"
    sent = {name: of_bytes(file.read_bytes()), "layouts": layouts}
    check_equal(infer(client, "layout-xla-cpu", **sent), expected)


def test_tiles_have_equal_scores(server, client, tile_graph):
    bounds = np.random.default_rng(2).integers(1, 64, (50, 2), np.int32)
    with Client(server) as own:
        tiles = Tiles(output_bounds=bounds, kernel_bounds=bounds[:, :1])
        expected = own.rank(tile_graph.graph, tiles, with_scores=True)
    graph = np.frombuffer(expected.graph_hash, np.uint8)
    sent = {"graph_hash": graph, "output_bounds": bounds, "kernel_bounds": bounds[:, :1].copy()}
    check_equal(infer(client, "", **sent), expected)


def test_fusions_have_equal_scores(server, client):
    graph = Graph.from_file(DATA / "fusion/adam_small.hlo_module.pb", task="fusion")
    with Client(server) as own:
        slots = len(own.put_graph(graph).configurable_nodes)
        fused = np.random.default_rng(3).integers(0, 2, (20, slots), np.int8).astype(bool)
        expected = own.rank(graph, Fusions(fused), with_scores=True)
    graph = np.frombuffer(expected.graph_hash, np.uint8)
    bits = np.packbits(fused, axis=1, bitorder="little")
    check_equal(infer(client, "", graph_hash=graph, fused=bits), expected)


def test_the_page_ranks_tiles(server, capsys):
    page = (REPOSITORY / "docs/open-inference.md").read_text()
    [block] = re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)
    exec(block.replace("127.0.0.1:7070", server), {})
    assert re.match(r"best: \[\d+ +\d+\] scores: \[", capsys.readouterr().out)


def test_a_server_and_its_models_are_described(client):
    assert client.is_server_live() and client.is_server_ready()
    assert shown(client.get_server_metadata())["name"] == "hlorank"
    assert client.is_model_ready("layout-xla-cpu")
    assert not client.is_model_ready("layout-xla-cpu", "999")
    assert not client.is_model_ready("nothing")
    described = shown(client.get_model_metadata("layout-xla-cpu"))
    shapes = {
        tensor["name"]: (tensor["datatype"], [int(size) for size in tensor["shape"]])
        for tensor in described["inputs"]
    }
    assert shapes["layouts"] == ("INT8", [-1, -1, 18])
    assert "fused" not in shapes
    outputs = {tensor["name"] for tensor in described["outputs"]}
    assert outputs == {"scores", "ranking", "graph_hash"}


def shown(answer) -> dict:
    """The fields of an answer, which is a message in gRPC."""
    if isinstance(answer, dict):
        return answer
    return MessageToDict(answer, preserving_proto_field_name=True)


LAYOUTS = np.full((2, 3, 18), -1, np.int8)
UNKNOWN = np.zeros(32, np.uint8)


@pytest.mark.parametrize(
    ("model", "inputs", "code", "words"),
    [
        ("nothing", {"graph_hash": UNKNOWN, "layouts": LAYOUTS}, "NOT_FOUND", "nothing"),
        ("", {"graph_hash": UNKNOWN, "layouts": LAYOUTS}, "FAILED_PRECONDITION", "not cached"),
        ("", {"graph_hash": UNKNOWN}, "INVALID_ARGUMENT", "layouts, fused"),
        ("", {"layouts": LAYOUTS}, "INVALID_ARGUMENT", "graph_hash, hlo_module"),
        ("", {"graph_hash": UNKNOWN, "layouts": LAYOUTS + 9}, "INVALID_ARGUMENT", "slot 0"),
        (
            "",
            {"graph_hash": UNKNOWN, "layouts": LAYOUTS[:, 0]},
            "INVALID_ARGUMENT",
            "INT8 [2, 18]",
        ),
        (
            "",
            {"graph_hash": UNKNOWN, "layouts": LAYOUTS, "fused": LAYOUTS[:, 0].view(np.uint8)},
            "INVALID_ARGUMENT",
            "layouts, fused",
        ),
        (
            "",
            {"graph_hash": UNKNOWN, "layouts": LAYOUTS, "image": UNKNOWN},
            "INVALID_ARGUMENT",
            "`image`",
        ),
    ],
)
def test_errors_are_those_of_every_call(client, model, inputs, code, words):
    found = refused(infer, client, model, **inputs)
    assert found.startswith(STATUSES[code]) and words in found


STATUSES = {
    "NOT_FOUND": ("StatusCode.NOT_FOUND: ", "404: "),
    "FAILED_PRECONDITION": ("StatusCode.FAILED_PRECONDITION: ", "400: "),
    "INVALID_ARGUMENT": ("StatusCode.INVALID_ARGUMENT: ", "400: "),
}


@contextmanager
def connected(*flags: str):
    """A client of a server with these flags."""
    with run_server(*flags) as address, grpc.InferenceServerClient(address) as client:
        yield client


def refused(call, *arguments, **inputs) -> str:
    """The status of a call, and what is wrong."""
    with pytest.raises(InferenceServerException) as refused:
        call(*arguments, **inputs)
    return f"{refused.value.status()}: {refused.value.message()}"


def test_limits_are_those_of_every_call():
    with connected("--max-configs=100", "--max-message-bytes=1MiB") as client:
        for configs, words in [(101, "at most 100"), (100_000, "--max-message-bytes")]:
            layouts = np.full((configs, 3, 18), -1, np.int8)
            assert words in refused(infer, client, "", graph_hash=UNKNOWN, layouts=layouts)


def test_tokens_and_deadlines_are_those_of_every_call(tmp_path):
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    (tmp_path / "tokens").write_text(f"tests read sha256:{digest}\n")
    with connected(f"--tokens={tmp_path / 'tokens'}") as client:
        assert "UNAUTHENTICATED" in refused(client.is_server_live)
        headers = {"authorization": f"Bearer {TOKEN}"}
        assert client.is_server_live(headers)
        late = {**headers, "connect-timeout-ms": "1"}
        assert "DEADLINE_EXCEEDED" in refused(client.is_server_live, late)


def send(address: str, verb: str, path: str, body: str = "", **headers: str) -> tuple[int, dict]:
    """The status and the JSON that a path of the REST form answers; headers have _ for -."""
    connection = HTTPConnection(address)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(verb, f"/v2{path}", body or None, named)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def test_the_rest_form_says_what_is_ready(server):
    assert send(server, "GET", "/health/live") == (200, {"live": True})
    assert send(server, "GET", "/health/ready") == (200, {"ready": True})
    path = "/models/layout-xla-cpu/ready"
    assert send(server, "GET", path) == (200, {"name": "layout-xla-cpu", "ready": True})
    assert send(server, "GET", "/models/a/ready") == (400, {"name": "a", "ready": False})
    status, described = send(server, "GET", "")
    assert (status, described["name"], described["extensions"]) == (200, "hlorank", [])
    status, error = send(server, "GET", "/models/a/versions/2")
    assert status == 404 and "`a`" in error["error"]


@pytest.mark.parametrize(
    ("verb", "headers", "status", "words"),
    [
        ("POST", {}, 400, "data[1][0] of the input `output_bounds`: invalid type"),
        ("POST", {"inference_header_content_length": "9"}, 400, "binary_data=False"),
        ("POST", {"content_type": "text/plain"}, 415, "text/plain"),
        ("POST", {"origin": "http://a.example"}, 415, "content type"),
        ("GET", {}, 405, "GET"),
    ],
)
def test_the_rest_form_says_what_is_wrong(server, verb, headers, status, words):
    bounds = {"name": "output_bounds", "shape": [2, 1], "datatype": "INT32"}
    body = json.dumps({"inputs": [bounds | {"data": [[1], [1.5]]}]})
    found, error = send(server, verb, "/models//infer", body, **headers)
    assert found == status and words in error["error"]


def test_the_rest_form_needs_a_token(tmp_path):
    digest = hashlib.sha256(TOKEN.encode()).hexdigest()
    (tmp_path / "tokens").write_text(f"tests read sha256:{digest}\n")
    with run_server(f"--tokens={tmp_path / 'tokens'}") as address:
        assert send(address, "GET", "/health/live")[0] == 401
        assert send(address, "GET", "/health/live", authorization=f"Bearer {TOKEN}")[0] == 200
