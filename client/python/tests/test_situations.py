"""Connections that fail: the situation is named, with what to do, and not in gRPC's words."""

import asyncio
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import grpc
import pytest
from fake_server import fake_server
from library_words import assert_own_words
from tls import Certificate, tls_server

from hlorank import (
    AnswerError,
    AsyncClient,
    Client,
    ClosedError,
    HandshakeError,
    HlorankError,
    UnsupportedError,
)

ANSWER = bytes(200)


@pytest.fixture(scope="module")
def here(tmp_path_factory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("here"), "localhost")


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("elsewhere"), "other.example")


@pytest.fixture(scope="module")
def expired(tmp_path_factory) -> Certificate:
    return Certificate(tmp_path_factory.mktemp("expired"), "localhost", days=-1)


@contextmanager
def listener(answer: bytes | None) -> Iterator[str]:
    """Sends bytes to every connection and closes it; None leaves it open and silent."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ExitStack() as stack:

        def accept() -> None:
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:  # closed
                    return
                if answer is None:
                    stack.enter_context(connection)
                    continue
                with connection:
                    connection.recv(1)
                    connection.sendall(answer)

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{listening.getsockname()[1]}"
        # A thread in accept keeps the port.
        listening.shutdown(socket.SHUT_RDWR)


def failed(address: str, **options) -> HlorankError:
    """Returns the error of a call, which both clients raise alike."""

    async def call() -> HlorankError:
        async with AsyncClient(address, **options) as client:
            with pytest.raises(HlorankError) as refused:
                await client.list_models()
        return refused.value

    options = {"retries": 0, "timeout": 20} | options
    with Client(address, **options) as client, pytest.raises(HlorankError) as refused:
        client.list_models()
    error = asyncio.run(call())
    assert (type(error), str(error)) == (type(refused.value), str(refused.value))
    assert_own_words(str(error))
    return error


def trusted(authority: bytes, *pair: bytes) -> grpc.ChannelCredentials:
    return grpc.ssl_channel_credentials(authority, *pair)


def test_a_certificate_that_is_not_accepted_is_named_with_what_to_do(here, elsewhere, expired):
    untrusted = r"is not trusted \(.*signed certificate\); give its authority with credentials="
    for certificate, authority, words in (
        (here, None, untrusted),
        (here, elsewhere.certificate, untrusted),
        (elsewhere, elsewhere.certificate, "is for another host: connect to a name"),
        (expired, expired.certificate, r"is not trusted \(certificate has expired\)"),
    ):
        with tls_server(certificate) as address:
            error = failed(address, credentials=trusted(authority))
        assert type(error) is HandshakeError
        assert re.search(words, str(error)), str(error)


@pytest.mark.parametrize(
    ("authority", "pair"),
    [(b"no PEM", ()), ("own", (b"no PEM", "own")), ("own", ("other", "own"))],
)
def test_credentials_that_cannot_be_used_are_named(here, elsewhere, authority, pair):
    contents = {"own": here.certificate, "other": elsewhere.key}
    given = [contents.get(content, content) for content in (authority, *pair)]
    with tls_server(here) as address:
        error = failed(address, credentials=trusted(*given))
    assert "the credentials for localhost" in str(error) and "PEM" in str(error)


def test_only_one_side_with_tls_is_said(here):
    with tls_server(here) as address:
        assert "begin the address with https://" in str(failed(address))
    with fake_server(ANSWER) as server:
        assert "begin the address with http://" in str(failed(f"https://{server.address}"))


def test_a_server_that_asks_for_certificates_is_named(here):
    with tls_server(here, authority=here.certificate) as address:
        error = failed(address, credentials=trusted(here.certificate))
    assert "--certificate CERTIFICATE,KEY" in str(error)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("127.0.0.1:1", "nothing listens at 127.0.0.1:1"),
        ("unix:/nowhere.sock", "nothing listens at unix:/nowhere.sock"),
        ("nowhere.invalid:7070", "the host of nowhere.invalid:7070 is unknown"),
        ("ipv4:nowhere", "give HOST:PORT"),
        ("xds:///nowhere", "give HOST:PORT"),
    ],
)
def test_an_address_where_no_server_is_says_so(address, words):
    assert words in str(failed(address))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closes the connection at once"),
        (b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n", "is no server of hlorank"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "is no server of hlorank"),
    ],
)
def test_another_program_is_named(answer, words):
    with listener(answer) as address:
        assert words in str(failed(address))


def test_a_server_that_does_not_answer_in_time_says_so():
    with listener(None) as address:
        assert "did not answer within the timeout: raise timeout=" in str(
            failed(address, timeout=1)
        )


def test_the_limit_of_this_client_is_told_from_the_server_s(tile_graph):
    with fake_server(ANSWER) as server:
        assert "the answer has 200 bytes, and message_bytes of this client is 100" in str(
            failed(server.address, message_bytes=100)
        )
        with (
            Client(server.address, message_bytes=100, retries=0) as client,
            pytest.raises(HlorankError) as refused,
        ):
            client.rank(tile_graph.graph, tile_graph.configurations)
    assert_own_words(str(refused.value))
    assert re.match("the request has [0-9]+ bytes, and message_bytes", str(refused.value))


@pytest.mark.parametrize("answers", [(), (b"\xff\xff\xff",)])
def test_an_answer_that_is_no_message_is_an_error_of_the_answer(answers):
    with fake_server(*answers) as server:
        error = failed(server.address)
    assert type(error) is AnswerError and "compare `hlorank-server --version`" in str(error)


def test_a_client_that_is_closed_during_a_call_says_so():
    async def close_during_a_call(address: str) -> None:
        client = AsyncClient(address)
        call = asyncio.create_task(client.list_models())
        await asyncio.to_thread(wait_for, lambda: server.calls)
        await client.close()
        await call

    with fake_server(code=grpc.StatusCode.UNAVAILABLE, answered=0) as server:
        with pytest.raises(ClosedError, match="the client was closed during the call"):
            asyncio.run(close_during_a_call(server.address))
        client = Client(server.address)
        calls = len(server.calls)
        closing = threading.Thread(
            target=lambda: (wait_for(lambda: len(server.calls) > calls), client.close())
        )
        closing.start()
        with pytest.raises(ClosedError, match="the client was closed during the call"):
            client.list_models()
        closing.join()


def wait_for(state: Callable[[], object]) -> None:
    while not state():
        threading.Event().wait(0.01)


def test_the_authorities_of_the_environment_are_trusted(here, tmp_path, monkeypatch):
    (tmp_path / "own.crt").write_bytes(here.certificate)
    (tmp_path / "0123abcd.0").write_bytes(here.certificate)
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"):
        monkeypatch.delenv(name, raising=False)
    with tls_server(here) as address:
        assert "is not trusted" in str(failed(f"https://{address}"))
        for name, path in (("SSL_CERT_FILE", tmp_path / "own.crt"), ("SSL_CERT_DIR", tmp_path)):
            with monkeypatch.context() as environment:
                environment.setenv(name, str(path))
                # The server has no methods: a connection is all that is asked for.
                assert isinstance(failed(f"https://{address}"), UnsupportedError)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.crt"))
        with pytest.raises(HlorankError, match=r"missing.crt cannot be read: No such file"):
            Client(f"https://{address}")
