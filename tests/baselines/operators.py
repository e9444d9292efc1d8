"""Prints what each kind of operator of a model takes, for 64 configurations of one graph.

Takes the folder of a segment model, and the arrays that ``hlorank graph features`` wrote.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np
import onnxruntime

from configurations import NOT_CONFIGURABLE, VALUES, Configurations, Layouts, Tiles
from scoring import Model

_CONFIGURATIONS, _RUNS = 64, 50


class ProfiledModel(Model):
    """A model whose sessions record the time of every operator."""

    def __init__(self, folder: Path, records: Path):
        self.records = records
        self.sessions: dict[str, onnxruntime.InferenceSession] = {}
        super().__init__(folder, 1)

    def session(self, path: Path, threads: int) -> onnxruntime.InferenceSession:
        """Opens a session that records."""
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = threads
        options.enable_profiling = True
        options.profile_file_prefix = str(self.records / path.stem)
        providers = ["CPUExecutionProvider"]
        session = onnxruntime.InferenceSession(str(path), options, providers=providers)
        self.sessions[path.name] = session
        return session


def main(folder: Path, features: Path) -> None:
    """Prints one table per file of the model."""
    with TemporaryDirectory() as records:
        model = ProfiledModel(folder, Path(records))
        configurations = _first_configurations(features)
        for _ in range(_RUNS):
            model.score(model.read_graph(features), configurations, "deduplicated")
        for name, session in model.sessions.items():
            _print(name, json.loads(Path(session.end_profiling()).read_text()))


def _first_configurations(features: Path) -> Configurations:
    with np.load(features) as arrays:
        if "config_feat" in arrays.files:
            return Tiles(arrays["config_feat"][:_CONFIGURATIONS].astype(np.float32))
        entries = arrays["node_config_feat"][:_CONFIGURATIONS].astype(np.int64)
    slots = entries.shape[1]
    values, numbers = np.unique(entries.reshape(-1, VALUES), axis=0, return_inverse=True)
    values = np.concatenate([values, np.full((1, VALUES), NOT_CONFIGURABLE)])
    # The last slot stands for nodes that are not configurable.
    numbers = np.pad(numbers.reshape(-1, slots), [(0, 0), (0, 1)], constant_values=len(values) - 1)
    return Layouts(values, numbers, np.array([*[len(values)] * slots, 1]))


def _print(name: str, events: list[dict]) -> None:
    """Prints medians: microseconds of all operators of a kind, summed over them."""
    runs: dict[tuple[str, str], list[float]] = defaultdict(list)
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith("_kernel_time"):
            runs[event["args"]["op_name"], event["name"]].append(event["dur"])
    kinds: dict[str, list[float]] = defaultdict(list)
    for (kind, _), durations in runs.items():
        kinds[kind].append(median(durations))
    total = sum(map(sum, kinds.values()))
    print(f"\n{name}: {len(runs)} operators, {total:.0f} µs a run (median of {_RUNS} or more)\n")
    print(f"{'operator':24}{'count':>6}{'µs':>8}{'share':>8}")
    for kind, times in sorted(kinds.items(), key=lambda item: -sum(item[1])):
        print(f"{kind:24}{len(times):6}{sum(times):8.0f}{sum(times) / max(total, 1):8.0%}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
