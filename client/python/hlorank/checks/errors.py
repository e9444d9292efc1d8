"""Errors of the client, all of them an ``HlorankError``."""

import grpc


class HlorankError(Exception):
    """Base class of all errors of this package."""


class ArgumentError(HlorankError, ValueError, TypeError):
    """An argument that cannot be used: the message has its name, its value and what is expected."""


class ClosedError(HlorankError, ValueError):
    """A call of a client that was closed, or that another process made before a fork."""


class ConfigurationError(HlorankError, ValueError):
    """Arrays that are not valid configurations; the message names the place."""


class GraphFileError(HlorankError, ValueError):
    """Arrays, names or a file that are not a valid graph."""


class MissingFileError(GraphFileError, FileNotFoundError):
    """A file that does not exist or cannot be opened; the message names it and says why."""


class AnswerError(HlorankError):
    """An answer that violates the wire contract."""


class BatchTooLongError(HlorankError, ValueError):
    """A batch that exceeds the maximum message length. The stream remains usable."""

    def __init__(self, found: int, limit: int):
        super().__init__(found, limit)

    def __str__(self) -> str:
        found, limit = self.args
        return (
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


def is_no_store(error: HlorankError) -> bool:
    """Returns whether a call failed because the server keeps no measurements."""
    return isinstance(error, RefusedError) and error.reason == "MEASUREMENTS_OFF"


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


class HandshakeError(UnavailableError):
    """UNAVAILABLE: certificates or the scheme do not fit, which no retry changes."""


class DeadlineError(RefusedError):
    """DEADLINE_EXCEEDED: the call exceeded its ``timeout``."""


class UnsupportedError(RefusedError):
    """UNIMPLEMENTED: the server is older than the client, or it is another program."""
