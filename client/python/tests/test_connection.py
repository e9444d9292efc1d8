"""What a client is made of: an address, a token, and any event loop."""

import asyncio
import json
import re

import grpc
import pytest
from fake_server import fake_server
from servers import DATA

from hlorank import ArgumentError, AsyncClient, Client, RefusedError, UnavailableError
from hlorank.checks.units import duration, size
from hlorank.wire.address import host_and_port

UNITS = DATA / "units.json"


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("127.0.0.1:7070", "127.0.0.1:7070"),
        ("http://127.0.0.1:7070", "127.0.0.1:7070"),
        ("HTTP://127.0.0.1:7070/", "127.0.0.1:7070"),
        ("https://ranker.example:7070", "ranker.example:7070"),
        ("https://ranker.example", "ranker.example:443"),
        ("ranker_of_compose:7070", "ranker_of_compose:7070"),
        ("[::1]:7070", "[::1]:7070"),
        ("http://[fe80::1%eth0]:7070", "[fe80::1%eth0]:7070"),
        ("unix:/run/hlorank.sock", "unix:/run/hlorank.sock"),
        ("unix:///run/hlorank.sock", "unix:///run/hlorank.sock"),
        ("dns:///ranker.example:7070", "dns:///ranker.example:7070"),
        ("ipv4:10.0.0.1:7070,10.0.0.2:7070", "ipv4:10.0.0.1:7070,10.0.0.2:7070"),
        ("dns:7070", "dns:7070"),
    ],
)
def test_addresses_are_read(address, expected):
    assert host_and_port(address) == expected


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "the port is missing"),
        ("localhost", "the port is missing"),
        ("http://127.0.0.1", "the port is missing"),
        ("127.0.0.1:", "the port is missing"),
        ("127.0.0.1:http", "the port 'http' is not a number from 1 to 65535"),
        ("127.0.0.1:70700", "the port '70700' is not"),
        ("127.0.0.1:0", "the port '0' is not"),
        ("127.0.0.1:\u0667", "the port '\u0667' is not"),
        ("::1:7070", r"an IPv6 address needs brackets, as in \[::1\]:7070"),
        ("::1", "an IPv6 address needs brackets"),
        ("http://127.0.0.1:7070/rank", "expected HOST:PORT and nothing else"),
        ("http://user@127.0.0.1:7070", "expected HOST:PORT and nothing else"),
        ("http://", "expected HOST:PORT and nothing else"),
        ("ftp://127.0.0.1:7070", "only http:// and https:// are supported"),
        ("grpc://127.0.0.1:7070", "only http:// and https:// are supported"),
        (" 127.0.0.1:7070", "it contains white space"),
        ("127.0.0.1:7070\n", "it contains white space"),
        ("127.0.0.1 : 7070", "it contains white space"),
        ("unix:", "nothing follows the scheme"),
        ("", "the address is empty"),
        (b"127.0.0.1:7070", "the address is b'127.0.0.1:7070'"),
        (7070, "the address is 7070"),
        (None, "the address is None"),
    ],
)
@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_an_address_that_cannot_be_read_says_what_is_missing(client, address, reason):
    with pytest.raises(ArgumentError, match=reason):
        client(address)


def header_of(token):
    with (
        fake_server(code=grpc.StatusCode.INTERNAL) as server,
        Client(server.address, token=token) as client,
        pytest.raises(RefusedError),
    ):
        client.list_models()
    return server.calls[0][1].get("authorization")


def test_the_white_space_around_a_token_is_not_sent():
    for token in ("0123456789abcdef", "0123456789abcdef\n", " 0123456789abcdef\r\n"):
        assert header_of(token) == "Bearer 0123456789abcdef"
    assert header_of(None) is None


@pytest.mark.parametrize(
    ("token", "reason"),
    [
        ("", "the token is empty"),
        ("\n", "the token is empty"),
        (b"secret", r"the token is bytes, expected text: pass token\.decode\(\)"),
        ("secret\nsecret", r"its character 7 is '\\n'"),
        ("secrét", "its character 5 is 'é'"),
        ("sec\0ret", r"its character 4 is '\\x00'"),
        (7, "the token is a int"),
    ],
)
@pytest.mark.parametrize("client", [Client, AsyncClient])
def test_a_token_that_cannot_be_sent_is_refused_without_being_shown(client, token, reason):
    with pytest.raises(ArgumentError, match=reason) as refused:
        client("127.0.0.1:1", token=token)
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


@pytest.mark.parametrize(("kind", "read"), [("sizes", size), ("durations", duration)])
def test_sizes_and_durations_are_read_by_the_rule_of_the_server(kind, read):
    vectors = json.loads(UNITS.read_text())
    assert [read(text) for text, _ in vectors[kind]] == [number for _, number in vectors[kind]]
    for text in vectors[f"no_{kind}"]:
        with pytest.raises(ArgumentError, match=f"'{re.escape(text)}' is not .*, expected "):
            read(text)
