"""Whether two programs compute the same: the one comparison of results of all tuners."""

from collections.abc import Sequence
from typing import Any

import numpy as np

NOT_REPEATABLE = "its results differ from run to run, so that no other results can be checked"
"""Why a program cannot be the reference."""


def difference(expected: Sequence[Any], results: Sequence[Any], tolerance: float) -> str:
    """Says how results differ from the expected ones; empty if they agree.

    Arrays have any numeric type. ``tolerance`` is the maximum of ``largest_difference``.
    """
    shapes, found = ([np.shape(array) for array in arrays] for arrays in (expected, results))
    if found != shapes:
        return f"results have shapes {_listed(found)}, expected {_listed(shapes)}"
    differs = largest_difference(expected, results)
    if np.isnan(differs) or np.isinf(differs):
        return f"results differ by {differs}: NaN or infinities are not where they are expected"
    if differs > tolerance:
        return f"results differ by {differs:.1e} of the largest value"
    return ""


def largest_difference(left: Sequence[Any], right: Sequence[Any]) -> float:
    """Returns the largest difference of two results, relative to each array's largest value.

    Arrays below a thousandth of the overall largest value, such as gradients that cancel, are
    rounding noise and are compared on that scale. Infinities and NaNs must be equal on both sides.
    """
    pairs = [(_wide(a), _wide(b)) for a, b in zip(left, right, strict=True)]
    scales = [np.abs(a[np.isfinite(a)]).max(initial=0) for a, _ in pairs]
    floor = 1e-3 * max(scales, default=0) + 1e-30
    differences = []
    for (a, b), scale in zip(pairs, scales, strict=True):
        with np.errstate(invalid="ignore", over="ignore"):
            absolute = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0, np.abs(a - b))
        differences.append(absolute.max(initial=0) / max(scale, floor))
    # NumPy's maximum propagates NaN; Python's may drop it.
    return float(np.max(differences, initial=0))


def _wide(array: Any) -> np.ndarray:
    array = np.asarray(array)
    return array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)


def _listed(shapes: Sequence[tuple[int, ...]]) -> str:
    shown = ", ".join(map(str, shapes[:4]))
    return f"{shown} and {len(shapes) - 4} more" if len(shapes) > 4 else shown or "of nothing"
