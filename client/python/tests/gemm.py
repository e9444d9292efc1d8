"""A space of twelve configurations, and how long each takes."""

from hlorank import Space

SPACE = Space("gemm", {"tile": [1 << power for power in range(6)], "flag": ["-O1", "-O2"]})


def seconds(one):
    """The run time of a configuration; that of 8 and -O2 is the shortest."""
    return 0.1 + abs(one["tile"] - 8) / 10 + (one["flag"] == "-O1")
