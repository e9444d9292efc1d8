"""What the adapters of tuners share: what was measured comes first, and a server may be away."""

import warnings

import pytest
from servers import run_process

from hlorank import ArgumentError, Client, optional_server
from hlorank.optional_server import OptionalServer
from hlorank.tuner_rows import instance_of, name_of, number_of, row_of

ROWS = [row_of({"tile": tile, "warps": warps}) for tile in (16, 32, 64, 128) for warps in (1, 2, 4)]
SECONDS = [1.0 + 0.1 * number for number in range(len(ROWS))]


def measured(seconds=SECONDS):
    return list(zip(ROWS, seconds, strict=True))


def test_nothing_is_known_before_a_report(store):
    with Client(store) as client:
        assert OptionalServer(client, "nothing").best("gemm", "", ROWS) == []
        assert OptionalServer(client, "nothing").measured("gemm", "", ROWS[0]) == []


def test_a_row_that_is_fast_for_no_visible_reason_is_first(store):
    seconds = [*SECONDS[:7], 0.2, *SECONDS[8:]]
    with Client(store) as client:
        server = OptionalServer(client, "outlier", top_k=3)
        server.report("gemm", "512", measured(seconds))
        assert server.best("gemm", "512", ROWS)[0] == 7
        assert server.measured("gemm", "512", ROWS[0])[0] == ROWS[7]
        assert server.best("gemm", "513", ROWS) == [], "another instance"


def test_failures_are_not_proposed_and_equal_rows_count_once(store):
    with Client(store) as client:
        server = OptionalServer(client, "failures", top_k=len(ROWS))
        server.report("gemm", "", measured(["crash", *SECONDS[1:]]))
        assert server.best("gemm", "", [*ROWS, *ROWS])[0] == 1
        assert sorted(server.best("gemm", "", [*ROWS, *ROWS])) == list(range(1, len(ROWS)))


def test_what_was_not_sent_is_sent_once_the_server_is_back(tmp_path, monkeypatch):
    monkeypatch.setattr(optional_server, "_PAUSE", 0.0)
    flags = [f"--models={tmp_path}", f"--measurements={tmp_path / 'measurements'}"]
    with run_process(*flags) as server:
        address = server.address
    with Client(address) as client:
        adapter = OptionalServer(client, "this CPU", timeout=0.2)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert adapter.best("gemm", "", ROWS) == []
            adapter.report("gemm", "", measured()[:6])
            adapter.report("gemm", "", measured()[6:])
        assert len(caught) == 1
        assert adapter.flush() == 2
    with run_process(*flags, f"--listen={address}"), Client(address) as client:
        adapter._client = client
        adapter._timeout = 30.0
        assert adapter.flush() == 0
        assert adapter.best("gemm", "", ROWS)[0] == 0


def test_a_value_has_the_same_number_in_every_list():
    assert [number_of(value) for value in (3, 0.5, True, None)] == [3.0, 0.5, 1.0, -1.0]
    assert number_of("tf32") == number_of("tf32") != number_of("ieee")
    assert number_of("tf32") == int(number_of("tf32")) < 1 << 24, "exact as f32"


def test_names_of_any_length_are_possible():
    assert name_of("größe" * 100) == ("gr??e" * 100)[:128]
    assert instance_of("512") == "512"
    assert len(instance_of("512" * 100)) <= 256


def test_arguments_are_checked_at_once():
    with Client("127.0.0.1:1") as client, pytest.raises(ArgumentError, match="top_k"):
        OptionalServer(client, "this CPU", top_k=0)
