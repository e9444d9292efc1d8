"""The error of a dispatch that has no kernel graph."""

from hlorank import HlorankError


class UnsupportedDispatch(HlorankError):  # noqa: N818
    """A dispatch that cannot be converted to HLO: the operation, and why."""

    def __init__(self, operation: str, reason: str):
        super().__init__(f"{operation}: {reason}; the dispatch has no kernel graph")
        self.operation = operation
        self.reason = reason
