"""Which schedules of a pipeline are drawn: as in Singh et al. (2021), with noise and dropout."""

from collections.abc import Iterator

from hlorank_training.measuring.halide.schedule import Draw

GREEDY = Draw(0)
"""What the autoscheduler chooses itself, with a beam of one state."""
_NOISE = (0.15, 0.4, 0.8, 0.0, 0.3, 1.5, 0.4, 0.8)
_KEEP = (100, 100, 100, 1, 50, 100, 1, 50)
"""Noise on the weights and kept choices of a pipeline's draws, in turn."""
_BEAMS = (8, 4, 2)
"""Beams of the draws after the greedy one, and then of every eighth one in turn."""
_SLOWER = 10
"""How much longer than in the greedy search a state takes in the search of a beam, at most."""


def draws_after_greedy(count: int, greedy_seconds: float, beam_seconds: float) -> Iterator[Draw]:
    """Yields ``count`` draws; beams that would take longer than ``beam_seconds`` are narrower."""
    widest = max(1, int(beam_seconds / _SLOWER / max(greedy_seconds, 1e-3)))
    for number in range(1, count + 1):
        is_early = number <= len(_BEAMS)
        beam = _BEAMS[(number - 1) % len(_BEAMS)] if is_early or number % 8 == 0 else 1
        if is_early:
            yield Draw(number, beam=min(beam, widest))
        else:
            place = number % len(_NOISE)
            yield Draw(number, _NOISE[place], _KEEP[place], min(beam, widest))
