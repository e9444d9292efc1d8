"""Compares graphs of HLO texts with graphs of the modules that XLA's parser makes of the texts."""

import re
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hlorank.measure.schema import HloModuleProto

from hlorank_training.data.featurize import run
from hlorank_training.reports.tables import markdown

EQUAL = "equal"
HEADER = "HloModule"
PROTOS = (".hlo_module.pb", ".hlo.pb")
COMPUTATION = re.compile(r"^(?:ENTRY )?%?([\w.-]+) (?:\(.*\) -> .* ?)?\{$", re.MULTILINE)
NODES = "node_opcode"


@dataclass(frozen=True)
class Outcome:
    """What the comparison of one text gave."""

    file: Path
    kind: str
    """``equal``, or the class of the failure."""


def check_texts(folder: Path, hlorank: Path, parse: bool) -> list[Outcome]:
    """Compares every HLO text in a folder and the folders in it.

    The module is that of the file beside the text. Without one, or if ``parse``, XLA's parser
    makes it of the text.
    """
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and _is_text(file)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda file: Outcome(file, _compare(file, hlorank, parse)), files))


def table(outcomes: list[Outcome]) -> str:
    """Returns the number of texts of each class, and the first text of each."""
    classes: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        classes[outcome.kind].append(outcome)
    largest_first = sorted(classes.items(), key=lambda item: (item[0] != EQUAL, -len(item[1])))
    rows = [[kind, str(len(found)), found[0].file.name] for kind, found in largest_first]
    return markdown(("class", "texts", "the first of them"), rows)


def in_order_of_text(proto: bytes, text: str) -> bytes:
    """Returns a serialized module with its computations in the order of the text.

    XLA serializes them in another order than it prints them, once passes have changed a module.
    """
    names = COMPUTATION.findall(text)
    module = HloModuleProto.FromString(proto)
    by_name = {computation.name: computation for computation in module.computations}
    # Computations inside instructions have no names in the text, and are in its order.
    if sorted(names) != sorted(by_name):
        return proto
    ordered = HloModuleProto.FromString(proto)
    ordered.ClearField("computations")
    ordered.computations.extend(by_name[name] for name in names)
    return ordered.SerializeToString()


def _is_text(file: Path) -> bool:
    with file.open("rb") as opened:
        return HEADER.encode() in opened.read(1 << 12)


def _compare(file: Path, hlorank: Path, parse: bool) -> str:
    text = file.read_text(encoding="utf-8")
    try:
        proto = _module_of(file, text, parse)
    except Exception as error:  # jaxlib raises several types of its own
        return f"XLA refuses the text: {_first_words(str(error).splitlines()[1:2])}"
    with TemporaryDirectory() as folder:
        try:
            arrays = _features(hlorank, Path(folder), "text", text.encode())
            expected = _features(hlorank, Path(folder), "module", in_order_of_text(proto, text))
        except RuntimeError as error:
            return f"refused: {_first_words([str(error).rpartition(': ')[2]])}"
    return next(_differences(arrays, expected), EQUAL)


def _module_of(file: Path, text: str, parse: bool) -> bytes:
    name = file.name.removesuffix(".txt").removesuffix(".hlo")
    protos = [file.with_name(name + suffix) for suffix in PROTOS]
    present = [proto for proto in protos if proto.exists()]
    if present and not parse:
        return _inner_module(present[0].read_bytes())
    from jaxlib import _hlo

    return _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()


def _inner_module(proto: bytes) -> bytes:
    """Returns the module of an ``HloProto``, whose field 1 it is; a dump is one.

    In a module, field 1 is its name, which has no control characters.
    """
    length = start = 0
    while start == 0 or proto[start] >= 0x80:
        start += 1
        length |= (proto[start] & 0x7F) << (7 * (start - 1))
    field = proto[start + 1 : start + 1 + length]
    return field if any(byte < 0x20 for byte in field) else proto


def _features(hlorank: Path, folder: Path, name: str, content: bytes) -> dict[str, np.ndarray]:
    file, out = folder / name, folder / f"{name}.npz"
    file.write_bytes(content)
    run(hlorank, "graph", "features", str(file), "--out", str(out), "--pad", "-1")
    with np.load(out) as arrays:
        return dict(arrays)


def _differences(arrays: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> Iterator[str]:
    """Yields the classes of differences, the one that explains the others first."""
    nodes = len(arrays[NODES]) - len(expected[NODES])
    if nodes:
        yield f"{'more' if nodes > 0 else 'fewer'} nodes than the module"
    elif (arrays[NODES] != expected[NODES]).any():
        yield "other opcodes or another order"
    elif columns := np.flatnonzero((arrays["node_feat"] != expected["node_feat"]).any(0)).tolist():
        yield f"other features in columns {columns[0]} to {columns[-1]}"
    for name in sorted(expected):
        if not np.array_equal(arrays[name], expected[name]):
            yield f"other {name}"


def _first_words(lines: list[str]) -> str:
    """Returns a message without the places and names that differ among files."""
    message = re.sub(r"line \d+, column \d+|was parsing [\d:]+", "", " ".join(lines))
    return re.sub(r"`[^`]*`|\d+", "…", message).strip(" :,;")[:80]
