"""Statuses of failed calls as errors of the client."""

from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from hlorank.checks.errors import (
    DeadlineError,
    HlorankError,
    InvalidRequestError,
    NotFoundError,
    OverloadedError,
    PreconditionError,
    RefusedError,
    UnavailableError,
    UnsupportedError,
)
from hlorank.wire.situations import situation_of

_DETAILS = "grpc-status-details-bin"
_ERROR_OF_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.UNIMPLEMENTED: UnsupportedError,
}


def refused(error: Any, address: str, has_tls: bool) -> HlorankError:
    """Converts a ``grpc.RpcError`` of a call to an address, with the details in its trailers."""
    details = _details(error)
    info = details.get("ErrorInfo")
    retry = details.get("RetryInfo")
    violations = details["BadRequest"].field_violations if "BadRequest" in details else ()
    code = error.code()
    message = error.details() or ""
    kind = _ERROR_OF_CODE.get(code, RefusedError)
    if info is None:
        situation, message = situation_of(code, message, address, has_tls)
        if situation.error is not None and not issubclass(situation.error, RefusedError):
            return situation.error(message)
        code = situation.code or code
        kind = situation.error or _ERROR_OF_CODE.get(code, RefusedError)
    return kind(
        code,
        message,
        reason=info.reason if info else None,
        fields=tuple(violation.field for violation in violations),
        retry_after=retry.retry_delay.ToNanoseconds() / 1e9 if retry else None,
    )


def _details(error: Any) -> dict[str, Any]:
    """Returns the ``google.rpc`` messages that accompany a status, by name."""
    # Both transports iterate over pairs, although one of them has the type of a mapping.
    trailers = dict(iter(error.trailing_metadata() or ()))
    found = {}
    try:
        for packed in status_pb2.Status.FromString(trailers.get(_DETAILS, b"")).details:
            kind = getattr(error_details_pb2, packed.type_url.rpartition(".")[2], None)
            if kind is not None:
                found[kind.DESCRIPTOR.name] = kind.FromString(packed.value)
    except DecodeError:
        pass  # what a proxy adds may be no details; code and message remain
    return found
