"""The settings of a search for tiles."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TileSettings:
    """Settings of a search for tiles."""

    measurements: int = 8
    """Maximum number of measured tiles per dispatch, besides the compiler's choice."""
    predictions: int = 2048
    """Tiles that the model ranks before each round of measurements."""
    top_k: int = 4
    """Best of those, which a round measures."""
    seconds: float | None = None
    """Maximum duration; None for no limit."""
    seed: int = 0
