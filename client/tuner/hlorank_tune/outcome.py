"""The result of measuring one candidate."""

from dataclasses import dataclass

import numpy as np

MEASURED = "measured"
SLOW = "slow"
"""Measured by a single run, which took much longer than the reference."""


@dataclass(frozen=True)
class Outcome:
    """The result of one candidate."""

    status: str
    """``measured``, ``slow``, ``lowering failed``, ``compile failed``, ``run failed``,
    ``wrong result``, ``not checked``, ``timed out`` or ``crashed``"""
    nanoseconds: float | None = None
    reference: float | None = None
    """Nanoseconds of the reference, measured in the same rounds."""
    noise: float | None = None
    """Relative difference between two passes of the batch."""
    message: str = ""
    failure: str | None = None
    """What a server keeps of it, one of ``hlorank.FAILURES``; None if the candidate works, or
    if it is not certain that the candidate failed and not the harness"""

    @property
    def ratio(self) -> float:
        """Run time divided by the reference's; infinite if one of them does not work."""
        return self.nanoseconds / self.reference if self.nanoseconds and self.reference else np.inf


_STATUS = {
    "compile": "compile failed",
    "crash": "crashed",
    "timeout": "timed out",
    "wrong_result": "wrong result",
    None: "run failed",
}


def failed(message: str, failure: str | None, reference: float | None = None) -> Outcome:
    """Returns the outcome of a candidate that failed, with the status of its kind of failure."""
    return Outcome(_STATUS[failure], None, reference, None, message, failure)
