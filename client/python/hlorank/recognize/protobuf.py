"""Tells protobuf messages apart by the fields that they have, also those of messages inside."""

from collections.abc import Iterator
from itertools import islice

_MAX_FIELDS = 1 << 16
_MAX_WRAPPERS = 3
_FIXED = {1: 8, 5: 4}
"""Bytes of the wire types of fixed size."""


def fields(message: bytes) -> Iterator[tuple[int, bytes | int]]:
    """Yields the fields of a message up to where it is unreadable; the last may be cut off.

    Numbers other than integers are 0.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire_type = key & 7
        if at < 0 or not 0 < key >> 3 < 1 << 29:
            return
        if wire_type == 2:
            length, at = _varint(message, at)
            if at < 0:
                return
            yield key >> 3, message[at : at + length]
            at += length
        elif wire_type == 0:
            number, at = _varint(message, at)
            if at < 0:
                return
            yield key >> 3, number
        elif wire_type in _FIXED and at + _FIXED[wire_type] <= len(message):
            at += _FIXED[wire_type]
            yield key >> 3, 0
        else:
            return


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Returns a number and the place behind it, which is -1 if the number is not readable."""
    number = 0
    for shift, byte in zip(range(0, 70, 7), message[at : at + 10], strict=False):
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at + shift // 7 + 1
    return 0, -1


def first_bytes(message: bytes, number: int) -> bytes | None:
    """Returns the first text, bytes or message of a field."""
    found = (value for key, value in islice(fields(message), _MAX_FIELDS) if key == number)
    return next((value for value in found if isinstance(value, bytes)), None)


def inner_module(data: bytes) -> bytes:
    """Returns the module in a message, at most three messages deep, or the message itself."""
    inner = data
    for _ in range(_MAX_WRAPPERS):
        following = None if is_module(inner) else first_bytes(inner, 1)
        if following is None:
            break
        inner = following
    return inner if is_module(inner) else data


def holds_module(data: bytes) -> bool:
    """Returns whether a message is a module or holds one."""
    return is_module(inner_module(data))


def is_module(message: bytes) -> bool:
    """Returns whether a message is an ``HloModuleProto``: it has computations."""
    name = first_bytes(message, 1)
    return has_path(message, "3.2.2") and (name is None or _is_printable(name))


def is_message(data: bytes) -> bool:
    """Returns whether data is readable as one whole message, with fields that messages have."""
    numbers = [number for number, _ in islice(fields(data), _MAX_FIELDS)]
    return len(data) > 2 and bool(numbers) and max(numbers) < 10_000 and _is_whole(data)


def _is_whole(message: bytes) -> bool:
    """Returns whether every field of a message can be read."""
    at = 0
    for _ in range(_MAX_FIELDS):
        if at == len(message):
            return True
        key, at = _varint(message, at)
        if at < 0:
            return False
        wire_type = key & 7
        if wire_type == 2:
            length, at = _varint(message, at)
            at = at + length if at >= 0 else -1
        elif wire_type == 0:
            _, at = _varint(message, at)
        elif wire_type in _FIXED:
            at += _FIXED[wire_type]
        else:
            return False
        if not 0 <= at <= len(message):
            return False
    return True


def has_path(message: bytes, path: str) -> bool:
    """Returns whether a message has a field at a path such as ``1.2``.

    The field is a text, bytes if the path ends with ``*``, or a number if it ends with ``#``.
    """
    *outer, last = (int(number) for number in path.rstrip("*#").split("."))
    for number in outer:
        inner = first_bytes(message, number)
        if inner is None:
            return False
        message = inner
    found = (value for key, value in islice(fields(message), _MAX_FIELDS) if key == last)
    value = next(found, None)
    if isinstance(value, bytes):
        return path.endswith("*") or (path[-1] != "#" and bool(value) and _is_printable(value))
    return value is not None and path.endswith("#")


def _is_printable(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return not any(byte < 0x20 or byte == 0x7F for byte in text)
