"""Tunes matmul.c for a shape: `python tune.py M N K [MEASUREMENTS]`; `python tune.py export`."""

import os
import subprocess
import sys

from hlorank import Client, Space

TILES = ("TILE_I", "TILE_J", "TILE_K")


def space_of(m, n, k):
    """The configurations of the kernel for a shape."""
    return Space(
        "product",
        {
            **{tile: [4, 8, 16, 32, 64, 128, 256, 512] for tile in TILES},
            "optimize": ["-O2", "-O3"],
            "native": [False, True],
        },
        instance={"m": m, "n": n, "k": k},
    )


def measure(shape, one):
    """The seconds of a configuration, or how it failed."""
    flags = [one["optimize"], *(["-march=native"] if one["native"] else [])]
    macros = {**shape, **{tile: one[tile] for tile in TILES}}
    flags += [f"-D{name.upper()}={value}" for name, value in macros.items()]
    if subprocess.run(["gcc", *flags, "matmul.c", "-o", "matmul"]).returncode != 0:
        return "compile"
    ran = subprocess.run(["./matmul"], capture_output=True, text=True)
    return float(ran.stdout) if ran.returncode == 0 else "wrong_result"


with Client(os.environ.get("HLORANK_ENDPOINT", "127.0.0.1:7070")) as client:
    target = "this machine, gcc"
    if sys.argv[1:] == ["export"]:
        policy = client.search(space_of(1, 1, 1), target).export(choices=8)
        policy.write("product.json")
        print(policy.python())
        sys.exit()
    m, n, k, *measurements = map(int, sys.argv[1:])
    space = space_of(m, n, k)
    search = client.search(space, target)
    pick = search.predicted_best()
    print("first pick:", pick, "rests on:", search.rests_on or "nothing")
    if pick is not None:
        search.report(pick, measure(space.instance, pick))
        print("first pick:", search.best)
    search.run(lambda one: measure(space.instance, one), *measurements or [30])
    print("best:", search.best)
