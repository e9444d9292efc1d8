import grpc
import numpy as np
import pytest
from fake_server import answered, fake_server
from measured import form_of

from hlorank import (
    Client,
    ConfigurationError,
    Fusions,
    Graph,
    KernelTime,
    RefusedError,
)
from hlorank.wire.messages import (
    PutGraphResponse,
    RankConfigsRequest,
    RankConfigsResponse,
    RankConfigsStreamResponse,
)

GRAPH_HASH = bytes(32)
MODEL = {"name": "fusion-xla-cpu", "version": 1}
FUSIONS = Fusions([[True, False, True], [False, False, True]])
SECONDS, LOG_SECONDS = 1, 2


def drawn(*shape):
    return np.random.default_rng(7).random(shape) < 0.5


def program():
    return Graph.from_hlo_proto(b"module", task="fusion")


def ranking(**fields):
    valid = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")], "scored_configs": 2}
    valid |= {"predicted_seconds": [0.001, float("inf")], "unit": SECONDS}
    valid |= {"graph_hash": GRAPH_HASH, "model": MODEL}
    return RankConfigsResponse(**(valid | fields)).SerializeToString()


@pytest.mark.parametrize("slots", [0, 1, 8, 13, 300])
@pytest.mark.parametrize("kind", [bool, np.int8, np.float32])
def test_values_come_back_whatever_type_they_had(slots, kind):
    fusions = Fusions(drawn(20, slots).astype(kind))
    assert (len(fusions), fusions.slots) == (20, slots)
    assert fusions.values().dtype == bool and (fusions.values() == drawn(20, slots)).all()


def test_the_lowest_bit_of_the_first_byte_is_the_first_slot():
    bits = np.zeros((2, 10), bool)
    bits[1, [0, 2, 9]] = True
    form, message = form_of(Fusions(bits))
    assert form == "packed_fusion_configs"
    assert (message.config_count, message.fused) == (2, bytes([0, 0, 0b101, 0b10]))


def test_a_few_changes_travel_as_changes_of_the_first_configuration():
    bits = np.repeat(drawn(1, 100), 10, axis=0)
    bits[4, [17, 30]] ^= True
    form, message = form_of(Fusions(bits))
    assert form == "delta_fusion_configs"
    assert message.base == np.packbits(bits[0], bitorder="little").tobytes()
    assert list(message.change_counts) == [0, 0, 0, 0, 2, 0, 0, 0, 0, 0]
    assert list(message.change_slots) == [17, 30]
    assert form_of(Fusions(drawn(10, 100)))[0] == "packed_fusion_configs"
    assert form_of(Fusions(bits[:, :8]))[0] == "packed_fusion_configs", (
        "a byte is no more than a count"
    )


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([[0, 1], [0, 2]], "configuration 1, slot 1 is 2, expected a bool"),
        ([[0.0, np.nan]], "slot 1 is nan"),
        ([0, 1], r"shape \[2\], expected \[configs, slots\]"),
        (np.zeros((0, 4), bool), "no configurations"),
        ([["a"]], "expected bool"),
        ([[0], [0, 1]], "not an array"),
    ],
)
def test_what_is_no_fusion_is_refused_with_its_place(values, words):
    with pytest.raises(ConfigurationError, match=words):
        Fusions(values)


def test_the_request_has_the_task_the_bits_and_how_many_to_explain():
    with (
        fake_server(code=grpc.StatusCode.INVALID_ARGUMENT) as server,
        Client(server.address) as client,
    ):
        with pytest.raises(RefusedError):
            client.rank(program(), FUSIONS, top_k=2, explain_top=1)
        [(method, _, message)] = server.calls
    request = RankConfigsRequest.FromString(message)
    assert method.endswith("/RankConfigs") and request.graph.task == 3
    assert (request.top_k, request.explain_top) == (2, 1)
    assert request.batch == FUSIONS.wire


def test_scores_are_seconds_and_the_kernels_of_the_best_are_explained():
    kernels = [{"kernels": [{"node": 7, "computed_nodes": 3, "seconds": 0.001}]}, {}]
    answer = ranking(scores=[float("inf"), 0.001], kernels=kernels)
    with answered(answer) as client:
        ranked = client.rank(program(), FUSIONS, with_scores=True, explain_top=2)
    assert ranked.unit == "seconds" and ranked.best.tolist() == [1, 0]
    assert ranked.scores.tolist() == [np.inf, np.float32(0.001)]
    assert ranked.predicted_seconds.tolist() == ranked.best_scores.tolist()
    [(kernel,), none] = ranked.kernels
    assert kernel == KernelTime(7, 3, pytest.approx(0.001)) and none == ()


def test_a_stream_keeps_infinite_scores_and_the_unit():
    started = {"graph_hash": GRAPH_HASH, "model": MODEL, "unit": SECONDS}
    scores = {"scores": [float("inf"), 0.001]}
    last = {"ranking": [1, 0], "ranking_scores": [0.001, float("inf")]}
    last |= {"reuse": {"configs": 2}, "graph_hash": GRAPH_HASH, "model": MODEL}
    parts = ({"started": started}, {"scores": scores}, {"ranking": last})
    answers = [RankConfigsStreamResponse(**part).SerializeToString() for part in parts]
    with (
        answered(*answers) as client,
        client.rank_stream(program()) as stream,
    ):
        stream.send(FUSIONS)
        assert np.isinf(stream.scores().scores[0])
        ranked = stream.finish()
    assert ranked.unit == "seconds" and ranked.kernels == ()


def test_a_cached_program_has_slots():
    node = {"node": 5, "name": "add.5", "opcode": "add", "dimensions": [4, 8]}
    answer = PutGraphResponse(graph_hash=GRAPH_HASH, configurable_nodes=[node])
    with answered(answer.SerializeToString()) as client:
        cached = client.put_graph(program())
    assert [(slot.node, slot.opcode) for slot in cached.configurable_nodes] == [(5, "add")]
