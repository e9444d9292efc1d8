"""Run times as text."""


def duration(nanoseconds: float | None) -> str:
    """Formats a run time with a suitable unit."""
    if nanoseconds is None:
        return ""
    for limit, unit, scale in ((1e3, "ns", 1), (1e6, "µs", 1e3), (1e9, "ms", 1e6)):
        if nanoseconds < limit:
            return f"{nanoseconds / scale:.4g} {unit}"
    return f"{nanoseconds / 1e9:.4g} s"
