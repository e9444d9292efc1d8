"""The formats that are not read, by the rules of ``formats.json``."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from hlorank.recognize.protobuf import has_path, is_message
from hlorank.recognize.text import decoded, is_text

_LOOKED_AT = 64 << 10
_SHOWN = 80
_SHOWN_BYTES = 8


@dataclass(frozen=True)
class _Sample:
    """The part of content that the rules look at."""

    data: bytes = b""
    text: str | None = None
    entries: Sequence[str] = ()

    def lines(self) -> Iterator[str]:
        return (line.strip() for line in (self.text or "").split("\n"))


def name_of(data: bytes) -> str:
    """Says what data is that holds no module, and what to do."""
    if not data:
        return _said("an empty file", "hlo")
    text = decoded(data)
    if not is_text(text.encode(errors="replace")):
        return _find(_Sample(data)) or _unknown_bytes(data)
    start = text.encode(errors="replace")[:_LOOKED_AT].decode(errors="ignore")
    return _find(_Sample(start.encode(), start)) or _unknown_text(text)


def name_of_zip(entries: Sequence[str]) -> str:
    """Says what a zip archive is by the names of the files in it."""
    shown = ", ".join(_shortened(entry) for entry in entries[:3])
    more = ", …" if len(entries) > 3 else ""
    name = f"a zip archive of {len(entries)} files ({shown}{more})"
    return _find(_Sample(entries=entries)) or _said(name, "zip")


@cache
def _table() -> Any:
    return json.loads(files("hlorank.recognize").joinpath("formats.json").read_text("utf-8"))


def _said(name: str, advice: str) -> str:
    return f"this is {name}; {_table()['advice'][advice]}"


def _find(sample: _Sample) -> str | None:
    for found in _table()["formats"]:
        if any(_fits(rule, sample) for rule in found["when"]):
            return _said(found["name"], found["do"])
    return None


def _fits(rule: Any, sample: _Sample) -> bool:
    name = next(name for name in _RULES if name in rule)
    return _RULES[name](rule, sample)


def _has_bytes(rule: Any, sample: _Sample) -> bool:
    at = rule["at"]
    is_compared = at == 0 or sample.text is None
    return is_compared and sample.data[at:].startswith(rule["bytes"].encode("latin-1"))


def _has_inside(rule: Any, sample: _Sample) -> bool:
    return sample.text is None and rule["inside"].encode("latin-1") in sample.data[:_LOOKED_AT]


def _begins(rule: Any, sample: _Sample) -> bool:
    first = next((line for line in sample.lines() if line), "")
    return first.lower().startswith(rule["first"].lower())


def _has_line(rule: Any, sample: _Sample) -> bool:
    return any(line.startswith(rule["line"]) for line in sample.lines())


def _has_text(rule: Any, sample: _Sample) -> bool:
    return sample.text is not None and rule["text"] in sample.text


def _has_fields(rule: Any, sample: _Sample) -> bool:
    return sample.text is None and all(has_path(sample.data, path) for path in rule["fields"])


def _has_entry(rule: Any, sample: _Sample) -> bool:
    return any(entry.endswith(rule["entry"]) for entry in sample.entries)


_RULES: dict[str, Callable[[Any, _Sample], bool]] = {
    "bytes": _has_bytes,
    "inside": _has_inside,
    "first": _begins,
    "line": _has_line,
    "text": _has_text,
    "fields": _has_fields,
    "entry": _has_entry,
}


def _unknown_text(text: str) -> str:
    line = next((line.strip() for line in text.split("\n") if line.strip()), None)
    if line is None:
        return _said("white space alone", "hlo")
    return _said(f"text without an HLO module, which begins with `{_shortened(line)}`", "hlo")


def _unknown_bytes(data: bytes) -> str:
    if is_message(data):
        return _said("a protobuf message without the computations of an HLO module", "hlo")
    shown = data[:_SHOWN_BYTES].hex(" ")
    return _said(f"data of an unknown format, which begins with the bytes {shown}", "hlo")


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
