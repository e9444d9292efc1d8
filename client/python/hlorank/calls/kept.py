"""What a server keeps of the measurements of a search."""

from dataclasses import dataclass, field

from hlorank.checks.arguments import text, wrong
from hlorank.checks.errors import HlorankError, is_no_store

_TARGET = "the name of what run times are measured on"


@dataclass
class Kept:
    """What the server keeps of what is measured on a target; several experiences may share one."""

    target: str
    """What run times are measured on: hardware, compiler and flags. Never mix targets."""
    measurements: int = field(default=0, init=False)
    problem: str = field(default="", init=False)
    """Why the last report was not kept; empty if it was."""
    is_off: bool = field(default=False, init=False)
    """Whether the server has no store."""

    def __post_init__(self) -> None:
        """Checks what the caller passed. Raises ArgumentError."""
        if not text(self.target, "target", _TARGET):
            raise wrong("target", self.target, _TARGET)

    def count(self, measurements: int) -> None:
        """Notes what a report added."""
        self.problem = ""
        self.measurements += measurements

    def fail(self, error: HlorankError) -> None:
        """Notes why a report was not kept. A server without a store is not asked again."""
        self.is_off = is_no_store(error)
        self.problem = str(error)

    def __str__(self) -> str:
        """Says in a line what became of the measurements; empty if a server keeps none."""
        if self.problem and not self.is_off:
            return f"not all measurements are kept for later searches: {self.problem}"
        if not self.measurements:
            return ""
        return f"{self.measurements} measurements are kept for later searches on '{self.target}'"
