"""Finds the modules in a text, which may also be a log, a report or a dump of several modules."""

import re

from hlorank.recognize.log_prefix import alike, logged

_MAX_MODULES = 10_000
_HEADER = re.compile(r"(.*?)HloModule[ \t](?=\s*\S)")
_STAMP = re.compile(r"[0-9][^a-z]*")
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_ENDS = ("## END_GRAPH", "```")
_STARTS = ("//", "/*", "}", "%", "ENTRY")
_STRING = r'"(?:[^"\\]|\\.)*+(?:"|$)'
_SKIPPED = re.compile(rf"""{_STRING}|{_STRING.replace('"', "'")}|//.*|[^()\[\]{{}}"'/]+|/""")
"""What has no brackets that count: strings, comments and other text."""


def modules_of(text: str) -> list[str]:
    """Returns the modules of a text in their order, without what a logger wrote in front."""
    if _is_one(text):
        return [text]
    modules: list[str] = []
    module: _OpenModule | None = None
    for line in _lines(text):
        if len(modules) >= _MAX_MODULES:
            break
        prefix = _header_prefix(line)
        if prefix is not None:
            modules += module.closed() if module else []
            module = _OpenModule(prefix)
        if module and not module.takes(line):
            modules += module.closed()
            module = None
    return modules + (module.closed() if module else [])


def _lines(text: str) -> list[str]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines[-1] == "" else lines


def _is_one(text: str) -> bool:
    """Returns whether a text surely is one module, so that a plain file is not searched."""
    is_plain = text.startswith("HloModule ") and text.count("HloModule") == 1
    return is_plain and " = " in text and text.rstrip().endswith("\n}")


def _header_prefix(line: str) -> str | None:
    """Returns what is in front of the header of a module; None if the line has no header."""
    if "HloModule" not in line or (found := _HEADER.match(line)) is None:
        return None
    prefix = found[1].rstrip()
    can_precede = not prefix or prefix[-1] in "]:|>" or _STAMP.fullmatch(prefix)
    return found[1] if can_precede else None


class _OpenModule:
    """A module whose lines are being read."""

    def __init__(self, prefix: str):
        self._prefix = alike(prefix)
        self._lines: list[str] = []
        self._depth = 0
        self._in_table = False

    def takes(self, line: str) -> bool:
        """Adds a line if it belongs to the module."""
        found = self._prefix.match(line)
        line = line[max(logged(line), found.end() if found else 0) :]
        trimmed = line.strip()
        belongs = self._depth > 0 or not self._lines or self._continues(trimmed)
        if not belongs or trimmed.startswith(_ENDS):
            return False
        for bracket in _SKIPPED.sub("", line):
            self._depth = self._depth + 1 if bracket in "([{" else max(self._depth - 1, 0)
        self._lines.append(line)
        return True

    def _continues(self, line: str) -> bool:
        """Returns whether a line between two computations belongs to the module."""
        is_row = self._in_table and line[:1] in tuple("0123456789")
        self._in_table = line in _TABLES or is_row or (self._in_table and not line)
        return not line or self._in_table or line.startswith(_STARTS) or line.endswith("{")

    def closed(self) -> list[str]:
        """Returns the module if it has an instruction, which the header in a log has not."""
        text = "\n".join([*self._lines, ""])
        return [text] if " = " in text else []
