"""What loggers write in front of a line."""

import re

_LOGGED = re.compile(r"[^\]]*[ \t][^ \t\]]*\.[^ \t\]]*:[0-9]+\](?: |$)")
"""The prefix of a line that XLA logs: ``I0000 00:00:00.000000 12 file.cc:34] ``."""


def logged(line: str) -> int:
    """Returns the length of the prefix of a line that XLA logs."""
    found = _LOGGED.match(line)
    return found.end() if found else 0


def alike(prefix: str) -> re.Pattern[str]:
    """Returns the pattern of prefixes that equal another but for numbers and spaces.

    Loggers that trim the ends of lines leave nothing of an empty line but the prefix.
    """
    parts = re.findall(r"[0-9]+|[ \t]+|[^0-9 \t]", prefix)
    return re.compile("".join(_part(part) for part in parts))


def _part(part: str) -> str:
    if part[0] in "0123456789":
        return "(?:[0-9]++|$)"
    return "(?:[ \t]++|$)" if part[0] in " \t" else re.escape(part)
