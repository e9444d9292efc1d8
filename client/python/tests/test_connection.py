"""What a client is made of: an address, a token, and any event loop."""

import asyncio
import json

import grpc
import pytest
from fake_server import fake_server
from servers import DATA

from hlorank import ArgumentError, AsyncClient, Client, RefusedError, UnavailableError
from hlorank.wire.address import channel_credentials, host_and_port

ENDPOINTS = json.loads((DATA / "endpoints.json").read_text(encoding="utf-8"))


def test_addresses_are_read_by_the_rule_of_the_command_line():
    for case in ENDPOINTS["read"]:
        assert host_and_port(case["text"]) == case["authority"], case
        assert (channel_credentials(case["text"], None) is not None) == case["tls"], case


def test_an_address_that_the_command_line_refuses_is_refused_for_the_same_reason():
    for case in ENDPOINTS["refused"]:
        with pytest.raises(ArgumentError) as refused:
            host_and_port(case["text"])
        assert case["reason"] in str(refused.value), case
        assert "word" not in str(refused.value).replace("a password", "")


@pytest.mark.parametrize(
    "address",
    ["unix:/run/hlorank.sock", "dns:///ranker.example:7070", "ipv4:10.0.0.1:7070,10.0.0.2:7070"],
)
def test_the_schemes_of_grpc_are_passed_on(address):
    assert host_and_port(address) == address


@pytest.mark.parametrize(
    ("address", "reason"),
    [("unix:", "nothing follows the scheme"), (7070, "the address is 7070")],
)
def test_an_address_that_cannot_be_read_says_what_is_missing(address, reason):
    with pytest.raises(ArgumentError, match=reason):
        Client(address)


def header_of(token):
    with (
        fake_server(code=grpc.StatusCode.INTERNAL) as server,
        Client(server.address, token=token) as client,
        pytest.raises(RefusedError),
    ):
        client.list_models()
    return server.calls[0][1].get("authorization")


def test_the_white_space_around_a_token_is_not_sent():
    for token in ("0123456789abcdef", " 0123456789abcdef\r\n"):
        assert header_of(token) == "Bearer 0123456789abcdef"
    assert header_of(None) is None


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("\n", "the token is empty"),
        (b"secret", "the token is a bytes, expected text"),
        ("secret\nsecret", r"its character 7 is '\\n'"),
        ("secrét", "its character 5 is 'é'"),
        ("sec\0ret", r"its character 4 is '\\x00'"),
    ],
)
def test_a_token_that_cannot_be_sent_is_refused_without_being_shown(token, reason):
    with pytest.raises(ArgumentError, match=reason) as refused:
        Client("127.0.0.1:1", token=token)
    assert "secr" not in str(refused.value)


def test_an_async_client_may_be_made_before_any_event_loop_and_used_in_several():
    async def ask(client):
        with pytest.raises(UnavailableError):
            await client.list_models()

    with fake_server(code=grpc.StatusCode.UNAVAILABLE) as server:
        client = AsyncClient(server.address, retries=0)
        for _ in range(3):
            asyncio.run(ask(client))
        assert len(server.calls) == 3
        asyncio.run(client.close())
