"""Files of certificates and keys, checked before gRPC takes them, which says nothing of them."""

import ssl
from pathlib import Path

import grpc

from hlorank import HlorankError
from hlorank.checks.files import file_content
from hlorank.wire.address import authorities

_CERTIFICATE = b"-----BEGIN CERTIFICATE-----"
_DER = b"\x30"
"""Begins certificates and keys that are not PEM."""


def channel_credentials(
    endpoint: str, authority: Path | None, pair: tuple[Path, Path] | None
) -> grpc.ChannelCredentials | None:
    """Returns the credentials of a connection; None without TLS.

    Args:
        endpoint: The address, ``https://`` for TLS.
        authority: The file of the certificates to trust; None for those of the system.
        pair: The files of a certificate and its key; None for none.

    Raises:
        HlorankError: if a file cannot be used; the message says what it is, and what to do.
    """
    if not endpoint.lower().startswith("https://"):
        if authority or pair:
            raise HlorankError(
                f"certificates were given, but {endpoint} does not use TLS; use an address at "
                "https://"
            )
        return None
    trusted = _certificates(authority) if authority else authorities()
    if pair is None:
        return grpc.ssl_channel_credentials(trusted)
    certificate, key = pair
    contents = _certificates(certificate), _key(key)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise HlorankError(
                f"the key in {key} does not belong to the certificate in {certificate}"
            ) from error
        raise HlorankError(f"{key} is damaged: get the key again") from error
    return grpc.ssl_channel_credentials(trusted, contents[1], contents[0])


def _certificates(path: Path) -> bytes:
    content = file_content(path, "certificate")
    if _CERTIFICATE not in content:
        raise _other(path, content, "a certificate", "x509")
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except ssl.SSLError as error:
        raise HlorankError(f"{path} has a damaged certificate: get it again") from error
    return content


def _key(path: Path) -> bytes:
    content = file_content(path, "key")
    if b"ENCRYPTED" in content:
        raise HlorankError(
            f"the key in {path} is encrypted: write it without a password, with openssl pkey -in "
            f"{path} -out KEY"
        )
    if b"PRIVATE KEY-----" not in content:
        raise _other(path, content, "a private key", "pkey")
    return content


def _other(path: Path, content: bytes, expected: str, command: str) -> HlorankError:
    if content.startswith(_DER):
        return HlorankError(
            f"{path} is not in PEM: convert it with openssl {command} -in {path} -out PEM, or with "
            f"openssl pkcs12 if it is a .p12 or .pfx"
        )
    return HlorankError(f"{path} does not contain {expected} in PEM")
