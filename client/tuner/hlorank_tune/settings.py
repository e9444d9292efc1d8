"""The settings of a search."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Settings of a search; a compiler has its own defaults."""

    strategy: str
    with_model: bool = True
    measurements: int = 24
    """Maximum number of measured candidates of a subject; a compiler says which of them count."""
    seconds: float | None = None
    """Maximum duration, the confirmation included; None for no limit."""
    predictions: int = 2048
    """Candidates that the model ranks before each round of measurements."""
    top_k: int = 4
    """Best of those, which are measured in a round."""
    seed: int = 0
