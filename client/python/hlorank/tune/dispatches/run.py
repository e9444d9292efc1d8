"""The state of a search for tiles, and its rows in the results."""

from dataclasses import asdict, dataclass, field
from typing import Any

from hlorank.errors import HlorankError
from hlorank.iree.dispatch import Dispatch
from hlorank.iree.tiles import TileSizes
from hlorank.tune.dispatches.kernel import Kernel, TileOutcome

_SIZES = ("distribution", "vector", "reduction")


class TuneError(HlorankError):
    """A program that IREE cannot compile, or that does not run."""


@dataclass
class TileRun:
    """One search and its results."""

    program: str
    kernels: list[Kernel] = field(default_factory=list)
    """The dispatches whose tiles are tuned, the longest first."""
    left: list[tuple[str, str]] = field(default_factory=list)
    """Names of the other dispatches, and why they are left alone."""
    errors: list[str] = field(default_factory=list)
    """Failed calls to the server."""
    spec: str = ""
    """The tuning spec; empty if nothing is gained."""
    chosen: dict[str, TileSizes] = field(default_factory=dict)
    """Tiles of the spec, by name of the dispatch."""
    default: float | None = None
    """Nanoseconds of the program as the compiler makes it."""
    tuned: float | None = None
    """Nanoseconds with the spec, measured in the same rounds."""
    noise: float = 0.0
    message: str = ""
    """What happened to a spec that is not used."""
    kept: str = ""
    """What became of the measurements at the server; empty without a server."""

    @property
    def ratio(self) -> float:
        """Time with the spec divided by the time without; 1 without a spec."""
        return self.tuned / self.default if self.spec and self.tuned and self.default else 1.0


def row_of(dispatch: Dispatch, outcome: TileOutcome) -> dict[str, Any]:
    """Returns a row of the results."""
    tile = None if outcome.tile is None else asdict(outcome.tile)
    return {"dispatch": dispatch.name, **asdict(outcome), "tile": tile}


def outcome_of(row: dict[str, Any]) -> TileOutcome:
    """Reads a row of the results."""
    tile = row["tile"] and TileSizes(*(tuple(row["tile"][k]) for k in _SIZES))
    fields = (row[name] for name in ("nanoseconds", "reference", "message", "score"))
    return TileOutcome(tile, *fields, row.get("failure"))
