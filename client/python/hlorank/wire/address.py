"""Addresses of servers, and what authenticates a client there."""

import ipaddress
import os
import re
import ssl
from pathlib import Path

import grpc

from hlorank.checks.arguments import shown
from hlorank.checks.errors import ArgumentError
from hlorank.checks.files import file_content

_NATIVE = ("unix", "unix-abstract", "dns", "ipv4", "ipv6", "vsock", "xds")
"""Schemes that gRPC resolves itself; their addresses are passed on as they are."""
_HOST = re.compile(r"[A-Za-z0-9._-]+")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_EXAMPLE = "for example 127.0.0.1:7070 or https://ranker.example:7070"
_HTTPS_PORT = "443"


def host_and_port(address: str) -> str:
    """Converts an address such as ``127.0.0.1:7070`` or ``http://127.0.0.1:7070`` for gRPC.

    Raises:
        ArgumentError: if it is no address; the message says what is missing.
    """
    given = _text(address)
    native, _, follows = given.partition(":")
    if native.lower() in _NATIVE and not _is_port(follows):
        if not follows.strip("/"):
            raise _wrong(given, "nothing follows the scheme")
        return given
    scheme, separator, rest = given.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        raise _wrong(given, "only http:// and https:// are supported")
    is_https = bool(separator) and scheme.lower() == "https"
    return _host_and_port(given, rest if separator else given, _HTTPS_PORT if is_https else "")


def _text(address: object) -> str:
    if not isinstance(address, str):
        raise ArgumentError(f"the address is {shown(address)}, expected text, {_EXAMPLE}")
    if not address.strip():
        raise ArgumentError(f"the address is empty, expected HOST:PORT, {_EXAMPLE}")
    if any(letter.isspace() or not letter.isprintable() for letter in address):
        raise ArgumentError(f"cannot connect to {address!r}: it contains white space, {_EXAMPLE}")
    return address


def _host_and_port(address: str, text: str, default_port: str) -> str:
    authority = re.split("[/?#]", text, maxsplit=1)[0]
    if "@" in authority:
        # Without the password, which would reach logs.
        host = authority.rpartition("@")[2]
        raise _wrong(host, "a name and a password are not sent; use a token")
    if "," in authority:
        raise _wrong(address, "it has several addresses, expected one")
    if text not in (authority, f"{authority}/"):
        raise _wrong(address, "nothing may follow the port")
    if authority.count(":") > 1 and not authority.startswith("["):
        raise _wrong(address, "an IPv6 address needs brackets, as in [::1]:7070")
    host, colon, port = authority.rpartition(":")
    if not colon or authority.endswith("]"):
        host, port = authority, default_port
    if not host:
        raise _wrong(address, "the host is missing")
    if not _is_host(host):
        raise _wrong(address, f"the host '{host}' is neither a name nor an address")
    if not port:
        raise _wrong(address, "the port is missing")
    if not _is_port(port):
        raise _wrong(address, f"the port '{port}' is not a number from 1 to 65535")
    return f"{host}:{port}"


def _is_host(text: str) -> bool:
    if not text.startswith("["):
        return _HOST.fullmatch(text) is not None
    try:
        ipaddress.IPv6Address(text[1:-1])
    except ValueError:
        return False
    return text.endswith("]")


def _is_port(text: str) -> bool:
    return _PORT.fullmatch(text) is not None and int(text) <= 65_535


def _wrong(address: str, reason: str) -> ArgumentError:
    return ArgumentError(f"cannot connect to {address}: {reason}, {_EXAMPLE}")


def channel_credentials(
    address: str, credentials: grpc.ChannelCredentials | None
) -> grpc.ChannelCredentials | None:
    """Returns the credentials of a TLS connection; None for no TLS."""
    if credentials is not None and not isinstance(credentials, grpc.ChannelCredentials):
        raise ArgumentError(
            f"credentials is {shown(credentials)}, expected grpc.ssl_channel_credentials(...) "
            "or None"
        )
    if address.lower().startswith("https://"):
        return credentials or grpc.ssl_channel_credentials(authorities())
    if credentials is not None and address.lower().startswith("http://"):
        raise ArgumentError(f"credentials need TLS: connect to https{address[4:]}")
    return credentials


def authorities() -> bytes | None:
    """Returns the certificates that are trusted by default, in PEM; None for gRPC's own choice.

    They are those of the system, or of ``SSL_CERT_FILE`` or ``SSL_CERT_DIR``, as for the other
    programs of a machine. gRPC would take a list of its own, which lacks an organization's
    authority.

    Raises:
        MissingFileError: if a file of them cannot be read.
    """
    if os.environ.get("GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"):
        return None
    system = ssl.get_default_verify_paths()
    file = os.environ.get("SSL_CERT_FILE")
    folder = os.environ.get("SSL_CERT_DIR")
    if not file and not folder:
        file, folder = system.cafile, system.capath
    # The files of a folder have the hash of their subject as a name, and a number as an end.
    files = [file] if file else sorted(Path(folder).glob("*.[0-9]")) if folder else []
    return b"\n".join(file_content(each, "SSL_CERT_FILE") for each in files) or None


def authorization(token: object) -> tuple[tuple[str, str], ...]:
    """Returns the header with a token, without the white space around it; none for None.

    Files, variables and secrets hold a token with the end of its line. The message of an error
    does not contain the token.

    Raises:
        ArgumentError: if it is no text, is empty, or cannot be sent in a header.
    """
    if token is None:
        return ()
    if not isinstance(token, str):
        raise ArgumentError(f"the token is a {type(token).__name__}, expected text or None")
    stripped = token.strip()
    if not stripped:
        raise ArgumentError("the token is empty: pass None to send none")
    for place, letter in enumerate(stripped):
        if not " " <= letter <= "~":
            raise ArgumentError(
                f"the token cannot be sent: its character {place + 1} is {letter!r}, expected one "
                "line of printable ASCII characters"
            )
    return (("authorization", f"Bearer {stripped}"),)
