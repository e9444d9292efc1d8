"""Decompresses gzip and zstd within limits."""

import io
import zlib
from gzip import GzipFile
from importlib import import_module

_MAX_UNPACKED = 1 << 30
_MAX_RATIO = 200
_MIN_RATIO_BYTES = 4 << 20
"""Decompressed bytes up to which a file may have any ratio."""


class UnpackError(Exception):
    """Compressed data that cannot be decompressed; the message says what to do."""


def unpacked(data: bytes) -> bytes:
    """Decompresses gzip or zstd; returns other data as it is.

    Raises:
        UnpackError: if the data is broken, or too large once it is decompressed.
    """
    limit = min(max(_MIN_RATIO_BYTES, len(data) * _MAX_RATIO), _MAX_UNPACKED)
    try:
        if data.startswith(b"\x1f\x8b"):
            found = GzipFile(fileobj=io.BytesIO(data)).read(limit + 1)
        elif data.startswith(b"\x28\xb5\x2f\xfd"):
            found = _zstd(data, limit)
        else:
            return data
    except UnpackError:
        raise
    except (OSError, EOFError, zlib.error, ValueError) as error:
        raise UnpackError(
            f"this is compressed, and its data is broken or cut off: {error}"
        ) from error
    if len(found) > limit:
        raise UnpackError(
            f"this is compressed, and holds more than {limit} bytes, the limit for its size; "
            "decompress it, and pass the file inside"
        )
    return found


def _zstd(data: bytes, limit: int) -> bytes:
    """Decompresses with Python 3.14's own module, or with ``zstandard``."""
    try:
        module = import_module("compression.zstd")
        return bytes(module.ZstdFile(io.BytesIO(data)).read(limit + 1))
    except ModuleNotFoundError:
        pass
    try:
        module = import_module("zstandard")
    except ModuleNotFoundError:
        raise UnpackError(
            "this is zstd data, which Python reads from 3.14 on or with the package `zstandard`; "
            "install it, or decompress the file with `zstd -d`"
        ) from None
    try:
        return bytes(module.ZstdDecompressor().stream_reader(io.BytesIO(data)).read(limit + 1))
    except module.ZstdError as error:
        raise ValueError(str(error)) from error
