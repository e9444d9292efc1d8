"""Measures every configuration of three C kernels with Kernel Tuner and gcc, for ``tuners.py``.

Usage: c_kernel_spaces.py FOLDER

Writes KERNEL.cpu.npz. What FOLDER/KERNEL.json has is not measured again.
"""

import argparse
import os
import sys
import warnings
from pathlib import Path

import numpy as np

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "client/python/tests/tuners"))

from c_kernels import KERNELS, Kernel  # noqa: E402, in the folder above

_ITERATIONS = 5


def main() -> None:
    """Measures one kernel after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder.resolve()
    os.chdir(folder)  # Kernel Tuner compiles in the working folder
    warnings.simplefilter("ignore")
    for kernel in KERNELS:
        write(kernel, folder)


def write(kernel: Kernel, folder: Path) -> None:
    """Measures a kernel, and writes its list."""
    cache = folder / f"{kernel.name}.json"
    results, _ = kernel.tune(strategy="brute_force", iterations=_ITERATIONS, cache=cache)
    names = list(kernel.parameters)
    np.savez(
        folder / f"{kernel.name}.cpu.npz",
        params=np.array([[result[name] for name in names] for result in results], float),
        names=np.array(names),
        seconds=np.array([_seconds(result) for result in results]),
    )
    print(kernel.name, len(results), flush=True)


def _seconds(result: dict) -> float:
    """The shortest run, since other processes only make runs longer; infinite if it failed."""
    return np.inf if "__error__" in result else 1e-3 * min(result["times"])


if __name__ == "__main__":
    main()
