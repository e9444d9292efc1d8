"""Files of certificates and keys, checked before gRPC takes them, which says nothing of them."""

import ssl
from pathlib import Path

import grpc

from hlorank import HlorankError
from hlorank.checks.files import file_content
from hlorank.wire.address import authorities


def channel_credentials(
    endpoint: str, authority: Path | None, pair: tuple[Path, Path] | None
) -> grpc.ChannelCredentials | None:
    """Returns the credentials of a connection; None without TLS.

    Args:
        endpoint: The address, ``https://`` for TLS.
        authority: The file of the certificates to trust; None for those of the system.
        pair: The files of a certificate and its key; None for none.

    Raises:
        HlorankError: if a file cannot be used.
    """
    if not endpoint.lower().startswith("https://"):
        if authority or pair:
            raise HlorankError(
                f"certificates were given, but {endpoint} does not use TLS; use an address at "
                "https://"
            )
        return None
    trusted = file_content(authority, "certificate") if authority else authorities()
    contents = [file_content(path) for path in pair or ()]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        if authority:
            context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise HlorankError(f"{authority} is no certificate in PEM") from error
    try:
        if pair:
            # With a password, since OpenSSL would ask for that of an encrypted key.
            context.load_cert_chain(*pair, password="")
    except ssl.SSLError as error:
        raise HlorankError(
            f"{pair[0]} and {pair[1]} are no certificate with its key, without a password, in PEM"
        ) from error
    return grpc.ssl_channel_credentials(trusted, *reversed(contents))
