"""Reads computations and instructions without the header of a module, as XLA's parser does."""

import re

_COMPUTATION = re.compile(r"(?:ENTRY\s+)?%?([\w.-]+)\s*(?:\(.*->.*)?\{", re.ASCII)
_INSTRUCTION = re.compile(
    r"(?:ROOT )?%?[\w.-]+ = (?:\(|(?:pred|token|(?:f|bf|s|u|c)[0-9][0-9A-Za-z]*)[\[(]).*", re.ASCII
)

_OTHER_OPERATIONS = (" prim::", " aten::", " xla::")
"""Operations in the graphs of PyTorch/XLA, which are written like HLO."""


def with_header(text: str) -> str | None:
    """Returns the module of a text that has computations or instructions but no header."""
    lines = [line.strip() for line in text.split("\n")]
    lines = [line for line in lines if line and not line.startswith("//")]
    if not lines or any(namespace in text for namespace in _OTHER_OPERATIONS):
        return None
    if _INSTRUCTION.fullmatch(lines[0]):
        is_list = all(_is_instruction(line) for line in lines)
        return f"HloModule entry\nENTRY entry {{\n{text}\n}}\n" if is_list else None
    first = _COMPUTATION.fullmatch(lines[0])
    if first is None or (len(lines) > 1 and not _is_instruction(lines[1])):
        return None
    entries = (_COMPUTATION.fullmatch(line) for line in lines if line.startswith("ENTRY "))
    entry = next((found for found in entries if found), None)
    return f"HloModule {(entry or first)[1]}\n{text if entry else _with_entry(text)}"


def _is_instruction(line: str) -> bool:
    return _INSTRUCTION.fullmatch(line) is not None and "(" in line.split(" = ", 1)[1]


def _with_entry(text: str) -> str:
    """Marks the last computation as the entry, because callees come before their callers."""
    lines = text.split("\n")
    headers = [place for place, line in enumerate(lines) if _COMPUTATION.fullmatch(line.strip())]
    lines[headers[-1]] = f"ENTRY {lines[headers[-1]].lstrip(' ' + chr(9))}"
    return "\n".join(lines)
