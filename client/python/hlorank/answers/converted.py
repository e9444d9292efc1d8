"""Data classes from the messages that have the same fields."""

from collections.abc import Callable, Mapping
from datetime import UTC
from functools import cache
from types import MappingProxyType, NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from google.protobuf.message import Message

from hlorank.wire.durations import seconds_of
from hlorank.wire.words import word

T = TypeVar("T")


def converted(kind: Callable[..., T], message: Message, /, **given: object) -> T:
    """Returns a data class with the fields of a message, and the given ones.

    Messages become data classes, lists tuples, durations seconds, times ``datetime`` and enums
    words. A field that the message can leave out, and does, is None if the data class allows that.
    """
    # The stubs do not say which fields have presence; the descriptors do.
    known = message.DESCRIPTOR.fields_by_name
    for name, hint in _hints(kind).items():
        if name in given:
            continue
        value = getattr(message, name)
        optional = NoneType in get_args(hint)
        if optional and known[name].has_presence and not message.HasField(name):
            given[name] = None
            continue
        if optional:
            hint = next(each for each in get_args(hint) if each is not NoneType)
        enum = known[name].enum_type
        if get_origin(hint) is not tuple:
            given[name] = _one(hint, enum, value, optional)
            continue
        every = (_one(get_args(hint)[0], enum, each, True) for each in value)
        # A newer server may list what this client has no word for.
        given[name] = tuple(each for each in every if each is not None)
    return kind(**given)


@cache
def _hints(kind: object) -> Mapping[str, Any]:
    return MappingProxyType(get_type_hints(kind))


def _one(hint: Any, enum: Any, value: Any, optional: bool) -> object:
    if enum is not None:
        found = word(enum, value)
        if get_origin(hint) is not Literal or found in get_args(hint):
            return found
        others = (each for each in ("", "unknown") if each in get_args(hint))
        return None if optional else next(others)
    match value.DESCRIPTOR.name if isinstance(value, Message) else None:
        case None:
            return value
        case "Duration":
            return seconds_of(value)
        case "Timestamp":
            return value.ToDatetime(UTC)
        case _:
            return converted(hint, value)
