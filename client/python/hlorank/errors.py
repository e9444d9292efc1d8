"""Why a call gave no answer."""

from typing import Any

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2

from hlorank.seconds import seconds

_DETAILS = "grpc-status-details-bin"


class HlorankError(Exception):
    """Every error of this package."""


class ConfigurationError(HlorankError, ValueError):
    """Arrays that are no configurations; the message names the place."""


class GraphFileError(HlorankError, ValueError):
    """A file that is no graph, or no measured one."""


class AnswerError(HlorankError):
    """An answer that breaks the contract."""


class BatchTooLongError(HlorankError, ValueError):
    """A batch that does not fit a message. The stream goes on."""

    def __init__(self, found: int, limit: int):
        super().__init__(
            f"the batch takes {found} bytes, at most {limit} go in one message; "
            "send it as several batches"
        )


class RefusedError(HlorankError):
    """The server, or the way to it, answered with an error."""

    code: grpc.StatusCode
    """The gRPC status code."""
    message: str
    """What is wrong, in words."""
    reason: str | None
    """What is wrong, for programs: UPPER_SNAKE_CASE, stable; docs/errors.md lists them."""
    fields: tuple[str, ...]
    """The fields of the request that are wrong, where it is about fields."""
    retry_after: float | None
    """Seconds to wait before trying again, where that helps."""

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
        self.code, self.message, self.reason = code, message, reason
        self.fields, self.retry_after = fields, retry_after

    def __str__(self) -> str:
        notes = [f"field `{field}`" for field in self.fields if field] + [self.code.name]
        notes += [self.reason] if self.reason else []
        notes += [f"try again in {self.retry_after:g} s"] if self.retry_after is not None else []
        return f"{self.message or 'the call failed'} ({', '.join(notes)})"


class InvalidRequestError(RefusedError):
    """INVALID_ARGUMENT: the graph or the configurations make no sense; ``fields`` says which."""


class PreconditionError(RefusedError):
    """FAILED_PRECONDITION: what was asked does not go together with what the server holds."""


class NotFoundError(RefusedError):
    """NOT_FOUND: no such model, or a version that is not loaded."""


class OverloadedError(RefusedError):
    """RESOURCE_EXHAUSTED: over a limit of the server; ``retry_after`` where waiting helps."""


class UnavailableError(RefusedError):
    """UNAVAILABLE: no server answers there, or it is stopping."""


class DeadlineError(RefusedError):
    """DEADLINE_EXCEEDED: the call took longer than its ``timeout``."""


_ERROR_OF_CODE = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.FAILED_PRECONDITION: PreconditionError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: OverloadedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
}


def refused(error: Any) -> RefusedError:
    """The error of a ``grpc.RpcError``, with the details that its trailers hold."""
    details = _details(error)
    info, retry = details.get("ErrorInfo"), details.get("RetryInfo")
    violations = details["BadRequest"].field_violations if "BadRequest" in details else ()
    return _ERROR_OF_CODE.get(error.code(), RefusedError)(
        error.code(),
        error.details() or "",
        reason=info.reason if info else None,
        fields=tuple(violation.field for violation in violations),
        retry_after=seconds(retry.retry_delay) if retry else None,
    )


def _details(error: Any) -> dict[str, Any]:
    """The messages of ``google.rpc`` beside a status, by name."""
    # Pairs in either client, though one of them looks like a mapping.
    trailers = dict(iter(error.trailing_metadata() or ()))
    found = {}
    try:
        for packed in status_pb2.Status.FromString(trailers.get(_DETAILS, b"")).details:
            kind = getattr(error_details_pb2, packed.type_url.rpartition(".")[2], None)
            if kind is not None:
                found[kind.DESCRIPTOR.name] = kind.FromString(packed.value)
    except DecodeError:
        pass  # whatever stands there, the status itself tells enough
    return found
