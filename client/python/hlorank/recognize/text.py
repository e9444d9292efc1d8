"""Tells text from other data, and decodes it."""

import re

_LOOKED_AT = 4096
_CONTROL = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")

# Atomic groups: with backtracking, many comments would take exponential time.
_START = re.compile(rb"(?>\s+|//[^\n]*\n|/\*(?>.*?\*/))*+HloModule(?![\w.-])", re.DOTALL)


def starts_with_module(data: bytes) -> bool:
    """Returns whether data begins with ``HloModule``, after comments and white space."""
    return _START.match(data) is not None


def decoded(data: bytes) -> str:
    """Returns the text of UTF-8, with or without a byte order mark, or of UTF-16."""
    if data.startswith(b"\xef\xbb\xbf"):
        return data[3:].decode(errors="replace")
    if data.startswith(b"\xff\xfe"):
        return data[2:].decode("utf-16-le", errors="replace")
    if data.startswith(b"\xfe\xff"):
        return data[2:].decode("utf-16-be", errors="replace")
    if re.match(rb"(?:[ -~]\x00){2}", data):
        return data.decode("utf-16-le", errors="replace")
    if re.match(rb"(?:\x00[ -~]){2}", data):
        return data.decode("utf-16-be", errors="replace")
    return data.decode(errors="replace")


def is_text(data: bytes) -> bool:
    """Returns whether the first bytes are those of text, and hardly any are not UTF-8."""
    start = data[:_LOOKED_AT]
    broken = start.decode(errors="replace").count("\ufffd") - start.count("\ufffd".encode())
    return _CONTROL.search(start) is None and broken <= len(start) // 64 + 1
