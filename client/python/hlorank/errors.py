"""Errors of the client."""

from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from hlorank.seconds import seconds

_DETAILS = "grpc-status-details-bin"


class HlorankError(Exception):
    """Base class of all errors of this package."""


class ArgumentError(HlorankError, ValueError, TypeError):
    """An argument that cannot be used: the message has its name, its value and what is expected."""


class ClosedError(HlorankError, ValueError):
    """A call of a client that was closed."""


class ConfigurationError(HlorankError, ValueError):
    """Arrays that are not valid configurations; the message names the place."""


class GraphFileError(HlorankError, ValueError):
    """A file or arrays that are not a valid graph, or not a valid measured graph."""


class MissingFileError(GraphFileError, FileNotFoundError):
    """A file that does not exist or cannot be opened; the message names it and says why."""


class UnsupportedDispatch(HlorankError):  # noqa: N818
    """A dispatch that cannot be converted to HLO: the operation, and why."""

    def __init__(self, operation: str, reason: str):
        super().__init__(f"{operation}: {reason}; the dispatch has no kernel graph")
        self.operation = operation
        self.reason = reason


class AnswerError(HlorankError):
    """An answer that violates the wire contract."""


class BatchTooLongError(HlorankError, ValueError):
    """A batch that exceeds the maximum message length. The stream remains usable."""

    def __init__(self, found: int, limit: int):
        super().__init__(
            f"the batch has {found} bytes, the maximum message length is {limit}; "
            "send several batches"
        )


class RefusedError(HlorankError):
    """The call ended with an error status, from the server or from the connection."""

    code: grpc.StatusCode
    """The gRPC status code."""
    message: str
    """Description for people."""
    reason: str | None
    """Stable reason code in UPPER_SNAKE_CASE; docs/errors.md lists them."""
    fields: tuple[str, ...]
    """The invalid fields of the request, if the error concerns fields."""
    retry_after: float | None
    """Seconds to wait before a retry, if the server suggests one."""

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str | None = None,
        fields: tuple[str, ...] = (),
        retry_after: float | None = None,
    ):
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason = reason
        self.fields = fields
        self.retry_after = retry_after

    def __str__(self) -> str:
        notes = [f"field `{field}`" for field in self.fields if field] + [self.code.name]
        notes += [self.reason] if self.reason else []
        notes += [f"retry after {self.retry_after:g} s"] if self.retry_after is not None else []
        return f"{self.message or 'the call failed'} ({', '.join(notes)})"


class InvalidRequestError(RefusedError):
    """INVALID_ARGUMENT: the graph or the configurations are invalid; ``fields`` names the part."""


class PreconditionError(RefusedError):
    """FAILED_PRECONDITION: the request does not match the graphs and models of the server."""


class NotFoundError(RefusedError):
    """NOT_FOUND: the model does not exist, or the version is not loaded."""


class OverloadedError(RefusedError):
    """RESOURCE_EXHAUSTED: a limit of the server is exceeded; see ``retry_after``."""


class UnavailableError(RefusedError):
    """UNAVAILABLE: no server can be reached, or it is shutting down."""


class DeadlineError(RefusedError):
    """DEADLINE_EXCEEDED: the call exceeded its ``timeout``."""


_ERROR_OF_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
}


def refused(error: Any) -> RefusedError:
    """Converts a ``grpc.RpcError`` with the details in its trailers."""
    details = _details(error)
    info = details.get("ErrorInfo")
    retry = details.get("RetryInfo")
    violations = details["BadRequest"].field_violations if "BadRequest" in details else ()
    return _ERROR_OF_CODE.get(error.code(), RefusedError)(
        error.code(),
        error.details() or "",
        reason=info.reason if info else None,
        fields=tuple(violation.field for violation in violations),
        retry_after=seconds(retry.retry_delay) if retry else None,
    )


def _details(error: Any) -> dict[str, Any]:
    """Returns the ``google.rpc`` messages that accompany a status, by name."""
    # Both clients iterate over pairs, although one of them has the type of a mapping.
    trailers = dict(iter(error.trailing_metadata() or ()))
    found = {}
    try:
        for packed in status_pb2.Status.FromString(trailers.get(_DETAILS, b"")).details:
            kind = getattr(error_details_pb2, packed.type_url.rpartition(".")[2], None)
            if kind is not None:
                found[kind.DESCRIPTOR.name] = kind.FromString(packed.value)
    except DecodeError:
        pass  # code and message remain
    return found
