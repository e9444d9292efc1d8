"""What gRPC's own statuses say of a connection, in the words of this client.

gRPC reports what happens on this side of a connection as a status whose text is for developers of
gRPC. The text is all that tells one situation from another, so a table of patterns reads it. A
server of hlorank sends details with every status, and its words are passed on, as are those of a
proxy, which match no pattern.
"""

import re
from typing import NamedTuple

import grpc

from hlorank.checks.errors import AnswerError, ClosedError, HandshakeError, HlorankError

_OTHER_PROGRAM = (
    "what answers at {address} is no server of hlorank, or one that is older than this client, or "
    "one with TLS: look at the address, which begins with https:// for TLS, and compare "
    "`hlorank-server --version` with `pip show hlorank`"
)
NO_MESSAGE = (
    "the answer is no message of hlorank: compare `hlorank-server --version` with "
    "`pip show hlorank`"
)


class Situation(NamedTuple):
    """Texts of gRPC that mean one thing."""

    pattern: str
    words: str
    """What is wrong and what to do; ``{0}`` and ``{1}`` are the groups of the pattern."""
    code: grpc.StatusCode | None = None
    """The status instead of gRPC's."""
    error: type[HlorankError] | None = None
    """The error instead of that of the status."""
    tls: bool | None = None
    """Whether the connection has TLS, if only one of the two has this situation."""


_SITUATIONS = (
    # Another program is not asked again until the deadline, as an unavailable server is. A proxy
    # whose server is away speaks HTTP/2, and is asked again.
    Situation(
        r"http1\.x|Failed parsing HTTP/2|header with status: 404",
        _OTHER_PROGRAM,
        grpc.StatusCode.UNIMPLEMENTED,
    ),
    Situation(
        "WRONG_VERSION_NUMBER",
        "the server at {address} does not use TLS: begin the address with http://, without "
        "certificates",
        error=HandshakeError,
    ),
    Situation(
        "Hostname Verification",
        "the certificate of the server at {address} is for another host: connect to a name that "
        "the certificate has",
        error=HandshakeError,
    ),
    Situation(
        "CERTIFICATE_VERIFY_FAILED: ([a-z ]+)",
        "the certificate of the server at {address} is not trusted ({0}); give its authority with "
        "credentials=grpc.ssl_channel_credentials(AUTHORITY), or with --ca FILE to a command",
        error=HandshakeError,
    ),
    Situation(
        "security handshaker",
        "the credentials for {address} cannot be used: give grpc.ssl_channel_credentials the "
        "content of PEM files: an authority, a key without password, and its certificate",
        error=HandshakeError,
    ),
    Situation(
        "failed to connect.*(Socket closed|reset by peer|Handshake)",
        "{address} closes the connection during the handshake of TLS: if the server asks for "
        "certificates of clients, give one and its key with credentials=, or with --certificate "
        "CERTIFICATE,KEY to a command",
        tls=True,
    ),
    Situation(
        "failed to connect.*(Socket closed|reset by peer)",
        "{address} closes the connection at once: if the server uses TLS, begin the address with "
        "https://",
        tls=False,
    ),
    Situation(
        "Connection refused|No such file or directory",
        "nothing listens at {address}: start a server there, or correct the address",
    ),
    Situation(
        "errors resolving|lookup failed|DNS resolution failed",
        "the host of {address} is unknown: correct the name, or look at DNS",
    ),
    Situation(
        "Failed to create (channel|XdsClient)|from resolver|uri is not valid",
        "gRPC cannot use the address {address}: give HOST:PORT",
    ),
    Situation(
        "failed to connect to all addresses",
        "{address} cannot be reached: look at the network and its firewalls",
    ),
    Situation(
        "Sent message larger than max .([0-9]+) vs. ([0-9]+)",
        "the request has {0} bytes, and message_bytes of this client is {1}: raise it, and "
        "--max-message-bytes of the server, or send several requests",
    ),
    Situation(
        "(?<!SERVER: )Received message larger than max .([0-9]+) vs. ([0-9]+)",
        "the answer has {0} bytes, and message_bytes of this client is {1}: raise it, or ask for "
        "less with top_k",
    ),
    Situation(
        "deserializing response",
        NO_MESSAGE,
        error=AnswerError,
    ),
    Situation("Channel closed", "the client was closed during the call", error=ClosedError),
    Situation("cancelled by application", "the call was cancelled by the caller"),
    Situation(
        "Deadline Exceeded",
        "{address} did not answer within the timeout: raise timeout=, or see whether the server is "
        "overloaded",
    ),
    Situation(
        "header with status: ([0-9]+)",
        "a proxy at {address} answers with HTTP status {0}: see its log",
    ),
    Situation(
        "Socket closed|GOAWAY|RST_STREAM|recvmsg|sendmsg|keepalive|ping timeout",
        "the connection to {address} ended during the call: see whether the server runs",
    ),
)


def situation_of(
    code: grpc.StatusCode, text: str, address: str, has_tls: bool
) -> tuple[Situation, str]:
    """Returns the situation of a status without details, and what to say of it."""
    for situation in _SITUATIONS:
        found = re.search(situation.pattern, text, re.S)
        if found is not None and situation.tls in (None, has_tls):
            return situation, situation.words.format(*found.groups(), address=address)
    if code is grpc.StatusCode.UNIMPLEMENTED:
        text = _OTHER_PROGRAM.format(address=address)
    return Situation("", text), text
