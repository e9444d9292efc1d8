"""Tunes matmul.c with gcc: a server without models learns from what is measured here."""

import subprocess
import sys

from hlorank import Client, Space

FLAGS = ("-march=native", "-ffast-math", "-funroll-loops", "-fprefetch-loop-arrays")
TILES = ("TILE_I", "TILE_J", "TILE_K")
SPACE = Space(
    "matmul",
    {
        "TILE_I": [8, 16, 32, 64, 128, 256],
        "TILE_J": [8, 16, 32, 64, 128, 256, 512],
        "TILE_K": [8, 16, 32, 64, 128, 256],
        "optimize": ["-O1", "-O2", "-O3"],
        **{flag: [False, True] for flag in FLAGS},
    },
    constraints=lambda one: one["TILE_J"] * one["TILE_K"] <= 32768,  # 128 KiB of a matrix
    instance="512x512x512",
)


def command(one):
    """What compiles a configuration."""
    flags = [one["optimize"], *(flag for flag in FLAGS if one[flag])]
    return ["gcc", *flags, *(f"-D{tile}={one[tile]}" for tile in TILES), "matmul.c", "-o", "matmul"]


def measure(one):
    """What comes of compiling and running it."""
    if subprocess.run(command(one), capture_output=True).returncode != 0:
        return {"failure": "compile"}
    try:
        ran = subprocess.run(["./matmul"], capture_output=True, text=True, timeout=10)
    except subprocess.TimeoutExpired:
        return {"failure": "timeout"}
    return {"seconds": float(ran.stdout)} if ran.returncode == 0 else {"failure": "wrong_result"}


server, measurements = sys.argv[1:] or ("127.0.0.1:7070", "40")
with Client(server) as client:
    search = client.search(SPACE, target="this machine, gcc")
    for number in range(int(measurements)):
        for configuration in search.suggest():
            outcome = measure(configuration)
            search.report(configuration, **outcome)
            print(number, outcome)
    print(f"{search.best[1]:.4f} s of {len(SPACE)}:", " ".join(command(search.best[0])))
