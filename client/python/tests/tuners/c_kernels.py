"""Three C kernels, with what Kernel Tuner needs to tune them."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import kernel_tuner
import numpy as np

FOLDER = Path(__file__).with_name("kernels")
OPTIONS = ["-O2", "-ftree-vectorize", "-march=native", "-ffast-math", f"-I{FOLDER}"]


@dataclass(frozen=True)
class Kernel:
    """A kernel and its space."""

    name: str
    size: tuple[int, ...]
    parameters: dict[str, list[int]]
    arguments: Callable[[], list[np.ndarray]]
    """Makes the result and the inputs."""
    expected: Callable[..., np.ndarray]
    """Computes the result from the inputs."""
    restrictions: tuple[str, ...] = ()

    def tune(self, **options: Any) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        """Runs Kernel Tuner with gcc; returns its results and its environment."""
        result, *inputs = self.arguments()
        answer = [self.expected(*inputs), *[None for _ in inputs]]
        given = {
            "compiler": "gcc",
            "lang": "C",
            "compiler_options": OPTIONS,
            "restrictions": list(self.restrictions),
            "answer": answer,
            "atol": 1e-2,
            "quiet": True,
        }
        source = (FOLDER / f"{self.name}.c").read_text()
        return kernel_tuner.tune_kernel(
            self.name, source, self.size, [result, *inputs], self.parameters, **given | options
        )


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).random(shape, np.float32)


def _blurred(image: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    return windows.mean((2, 3))


def _convolved(image: np.ndarray, weights: np.ndarray) -> np.ndarray:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (1, 2))
    return np.einsum("cyxij,ocij->oyx", windows, weights, optimize=True).astype(np.float32)


_SIZES = [4, 8, 16, 32, 64, 128, 256]
MATMUL = Kernel(
    "matmul",
    (256, 256, 256),
    {"tile_i": _SIZES, "tile_j": _SIZES, "tile_k": _SIZES, "order": [0, 1, 2], "unroll": [1, 4]},
    lambda: [np.zeros((256, 256), np.float32), _random(256, 256), _random(256, 256)],
    np.matmul,
    ("tile_j * tile_k <= 16384", "tile_i <= 64"),
)
BLUR = Kernel(
    "blur",
    (1024, 768),
    {
        "tile_x": [4, 8, 32, 128, 1024],
        "tile_y": [1, 2, 8, 32, 128, 768],
        "store": [0, 1, 2],
        "columns_first": [0, 1],
        "unroll": [1, 4],
    },
    lambda: [np.zeros((768, 1024), np.float32), _random(770, 1026)],
    _blurred,
)
CONVOLUTION = Kernel(
    "convolution",
    (32, 32, 32),
    {
        "block_x": [1, 2, 4, 8, 16, 32],
        "block_out": [1, 2, 4, 8, 16, 32],
        "innermost": [0, 1],
        "weights_last": [0, 1],
        "unroll": [1, 3, 9],
    },
    lambda: [
        np.zeros((32, 32, 32), np.float32),
        _random(32, 34, 34),
        _random(32, 32, 3, 3),
    ],
    _convolved,
)
KERNELS = (MATMUL, BLUR, CONVOLUTION)
