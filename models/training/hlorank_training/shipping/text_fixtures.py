"""Writes modules as HLO text and as protobuf, for the tests of the text reader."""

from pathlib import Path

from hlorank.measure.atomic_files import write_atomically
from jaxlib import _hlo

TEXT = ".hlo.txt"
PROTO = ".hlo_module.pb"
RANDOM = "fuzz_all_columns"
"""A module of random instructions, which XLA rejects."""


def write_text_fixtures(folder: Path) -> list[Path]:
    """Prints the modules of ``hlo`` and parses the texts of ``hlo_text``; returns the files."""
    return [*_print_modules(folder / "hlo"), *_parse_texts(folder / "hlo_text")]


def _print_modules(folder: Path) -> list[Path]:
    written = []
    for file in sorted(folder.glob(f"*{PROTO}")):
        if file.name != RANDOM + PROTO:
            module = _hlo.HloModule.from_serialized_hlo_module_proto(file.read_bytes())
            written.append(file.with_name(file.name.removesuffix(PROTO) + TEXT))
            write_atomically(written[-1], module.to_string().strip().encode() + b"\n")
    return written


def _parse_texts(folder: Path) -> list[Path]:
    written = []
    for file in sorted(folder.glob(f"*{TEXT}")):
        module = _hlo.hlo_module_from_text(file.read_text(encoding="utf-8"))
        written.append(file.with_name(file.name.removesuffix(TEXT) + PROTO))
        write_atomically(written[-1], module.as_serialized_hlo_module_proto())
    return written
