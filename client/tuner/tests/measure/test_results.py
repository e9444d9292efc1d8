"""The one comparison of results of all tuners."""

import numpy as np
import pytest

from hlorank_tune.measure.results import difference

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("expected", "results"),
    [
        ([NAN, 1.0], [NAN, 1.0]),
        ([NAN, NAN], [NAN, NAN]),
        ([INF, -INF, 1e9], [INF, -INF, 1e9]),
        ([-0.0, 0.0], [0.0, -0.0]),
        ([1000.0, 0.0], [1000.9, 0.5]),
        ([], []),
        (1.5, 1.5),
        ([True, False], [True, False]),
        ([1 << 62, -1], [1 << 62, -1]),
        ([complex(NAN, 1), 1j], [complex(NAN, 1), 1j]),
        (np.array([255], "u1"), np.array([255], "u1")),
        (np.array([1, INF], "f2"), np.array([1, INF], "f2")),
    ],
)
def test_results_agree(expected, results):
    assert difference([np.array(expected)], [np.array(results)], 1e-3) == ""


@pytest.mark.parametrize(
    ("expected", "results", "reason"),
    [
        ([0.0, 1.0], [NAN, 1.0], "differ by nan: NaN or infinities are not where"),
        ([NAN, 1.0], [0.0, 1.0], "differ by nan"),
        ([INF, 1.0], [-INF, 1.0], "differ by inf"),
        ([INF, 1.0], [1e38, 1.0], "differ by inf"),
        ([1000.0, 0.0], [1000.0, 2.0], "differ by 2.0e-03 of the largest value"),
        ([True, False], [True, True], "differ by 1.0e[+]00 of the largest value"),
        (np.array([0], "u1"), np.array([255], "u1"), "differ by"),
        ([1.0], [1.0, 2.0], r"results have shapes \(2,\), expected \(1,\)"),
        ([1.0], 1.0, r"results have shapes \(\), expected \(1,\)"),
    ],
)
def test_results_differ(expected, results, reason):
    with pytest.raises(AssertionError, match=reason):
        assert difference([np.array(expected)], [np.array(results)], 1e-3) == ""


def test_another_number_of_results_differs():
    one = np.zeros(2)
    assert difference([one], [one, one], 1e-3) == "results have shapes (2,), (2,), expected (2,)"
    assert difference([one], [], 1e-3) == "results have shapes of nothing, expected (2,)"
