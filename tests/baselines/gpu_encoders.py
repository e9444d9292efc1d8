"""Compares ONNX Runtime's CUDA provider with its CPU provider on the encoders that ship.

Needs the package ``onnxruntime-gpu`` and a GPU: ``python tests/baselines/gpu_encoders.py``. Prints
microseconds per row of runs over large blocks of random rows, one thread for the CPU, with the
inputs in host memory as a server has them, and the largest relative difference of the outputs.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import onnxruntime

REGISTRY = Path(__file__).parents[2] / "models" / "registry"
SIZES = (8, 32, 96, 256, 512)
ROWS = (64, 512, 2048)
FEATURES = 140
_SECONDS = 0.5
_ELEMENTS = 1 << 27


def main() -> None:
    """Prints one line for each model, size of a segment and number of rows."""
    providers = [p for p in onnxruntime.get_available_providers() if p.startswith("CUDA")]
    print(f"onnxruntime {onnxruntime.__version__}, {providers or 'no CUDA provider'}")
    print(
        f"{'model':22} {'nodes':>5} {'rows':>5} {'CPU us':>9} {'GPU us':>9} {'ratio':>6} difference"
    )
    results = []
    for folder in sorted(path.parent for path in REGISTRY.glob("*/*/manifest.json")):
        manifest = json.loads((folder / "manifest.json").read_text())
        if not (folder / "encoder.onnx").exists():
            continue
        for nodes in SIZES:
            for rows in ROWS:
                if rows * nodes * nodes <= _ELEMENTS // (8 if manifest["task"] == "fusion" else 1):
                    results.append(_compare(manifest["name"], folder, nodes, rows))
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(json.dumps(results, indent=1))


def _compare(name: str, folder: Path, nodes: int, rows: int) -> dict:
    inputs = _inputs(folder, nodes, rows)
    cpu, cpu_seconds = _run(folder / "encoder.onnx", inputs, "CPUExecutionProvider")
    gpu, gpu_seconds = _run(folder / "encoder.onnx", inputs, "CUDAExecutionProvider")
    difference = float(np.abs(gpu - cpu).max() / np.abs(cpu).max())
    line = [1e6 * seconds / rows for seconds in (cpu_seconds, gpu_seconds)]
    print(
        f"{name:22} {nodes:5} {rows:5} {line[0]:9.2f} {line[1]:9.2f} {line[0] / line[1]:6.1f} "
        f"{difference:.1e}",
        flush=True,
    )
    return {
        "model": name,
        "nodes": nodes,
        "rows": rows,
        "cpu_microseconds_per_row": line[0],
        "gpu_microseconds_per_row": line[1],
        "largest_relative_difference": difference,
    }


def _run(path: Path, inputs: dict, provider: str) -> tuple[np.ndarray, float]:
    """Returns the output and the shortest time of a run."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    # By default, CUDA rounds the factors of products to 10 bits.
    settings = {"use_tf32": "0"} if provider.startswith("CUDA") else {}
    session = onnxruntime.InferenceSession(path, options, providers=[(provider, settings)])
    if session.get_providers()[0] != provider:
        sys.exit(f"{provider} does not work here")
    times = []
    end = time.perf_counter() + _SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        output = session.run(None, inputs)[0]
        times.append(time.perf_counter() - begin)
    return output, min(times[1:])


def _inputs(folder: Path, nodes: int, rows: int) -> dict:
    """Returns inputs of ``encoder.onnx``: one random segment, or one for each row of a fusion."""
    random = np.random.default_rng(0)
    segment = folder / "segment.onnx"
    count = 1 if segment.exists() else rows
    static = _segments(random, count, nodes)
    if not segment.exists():
        return static | {"segment": np.arange(rows)}
    session = onnxruntime.InferenceSession(segment, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    tensors = dict(zip(names, session.run(names, static), strict=True))
    if "layout" in folder.parent.name:
        entries = random.integers(0, 4, (64, 18))
        return tensors | {"entries": entries, "config": random.integers(0, 64, (rows, nodes))}
    tiles = 2.0 ** random.integers(0, 7, (rows, 24))
    return tensors | {"config": tiles.astype(np.float32)}


def _segments(random: np.random.Generator, count: int, nodes: int) -> dict:
    """Returns chains with some second operands, as the inputs of ``segment.onnx``."""
    operands = np.zeros((count, nodes, nodes), np.float32)
    consumers = np.arange(1, nodes)
    operands[:, consumers, consumers - 1] = 1
    operands[:, consumers, random.integers(0, consumers)] = 1
    features = np.abs(random.normal(size=(count, nodes, FEATURES))).astype(np.float32)
    return {
        "opcode": random.integers(1, 120, (count, nodes)),
        "features": features,
        "operands": operands,
        "mask": np.ones((count, nodes), np.float32),
    }


if __name__ == "__main__":
    main()
