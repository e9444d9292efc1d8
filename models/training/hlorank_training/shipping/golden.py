"""Golden cases: whole graphs, some configurations, and the scores that the artifact gives them."""

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hlorank_tune.measure.atomic_files import write_atomically

GOLDEN = "golden.npz"
Score = Callable[[Path, np.ndarray], np.ndarray]
"""Scores f32 [c] of the configurations of a graph's file that these indices choose."""

_GRAPH_KEYS = ("node_feat", "node_opcode", "edge_index", "operands", "node_config_ids")
_CONFIGURATION_KEYS = ("node_config_feat", "config_feat")


@dataclass(frozen=True)
class GoldenRule:
    """Limits of the golden cases."""

    cases: int = 4
    configurations: int = 12
    whole_batch: int = 0
    """Minimum configurations of the smallest graph's case; those of a shorter list are repeated."""
    nodes: int = 600
    """Maximum nodes of a graph, so that the file stays small."""


def golden_cases(features: Sequence[Path], score: Score, rule: GoldenRule) -> dict[str, np.ndarray]:
    """Returns arrays by ``CASE/KEY`` from the first graphs within the limits."""
    small = [path for path in features if _nodes(path) <= rule.nodes][: rule.cases]
    golden: dict[str, np.ndarray] = {}
    smallest = min(small, key=_nodes, default=None)
    for number, path in enumerate(small):
        least = rule.whole_batch if path == smallest else 0
        with np.load(path) as arrays:
            configurations = len(arrays["config_runtime"])
            count = max(min(rule.configurations, configurations), least)
            # Spread over the list, and repeated if it is short.
            chosen = np.linspace(0, configurations - 1, count).astype(int)
            case = {key: arrays[key] for key in _GRAPH_KEYS if key in arrays.files}
            for key in _CONFIGURATION_KEYS:
                if key in arrays.files:
                    case[key] = arrays[key][chosen]
        case["score"] = score(path, chosen).astype(np.float32)
        golden |= {f"{number}/{key}": value for key, value in case.items()}
    return golden


def _nodes(path: Path) -> int:
    with np.load(path) as arrays:
        return len(arrays["node_opcode"])


def write_golden(folder: Path, arrays: dict[str, np.ndarray]) -> None:
    """Writes a compressed npz without time stamps, so that equal arrays give equal bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for key, value in arrays.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(value), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED)
    write_atomically(folder / GOLDEN, buffer.getvalue())
