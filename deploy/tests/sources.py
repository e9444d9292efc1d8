"""Reads the settings of the server from its help, and those that the image sets."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
DEPLOY = REPOSITORY / "deploy"
TARGET = REPOSITORY / "target"

_VERSION = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
IMAGE = f"hlorank:{_VERSION}"

# Turns off the telemetry of ONNX Runtime.
NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}


def server_program() -> Path:
    """Returns the server that was built last; skips the test if there is none."""
    built = [TARGET / profile / "hlorank-server" for profile in ("release", "debug")]
    built = [program for program in built if program.exists()]
    if not built:
        pytest.skip("the programs are not built: make build")
    return max(built, key=lambda program: program.stat().st_mtime)


def server_settings() -> dict[str, str]:
    """Returns every variable that the server reads, with its default as text."""
    help_text = subprocess.run(
        [server_program(), "--help"], env={}, capture_output=True, text=True, check=True
    ).stdout
    return dict(re.findall(r"\[env: (HLORANK_[A-Z_]+)=?\]\s*\[default: ([^\]]*)\]", help_text))


def dockerfile() -> list[tuple[str, str]]:
    """Returns the instructions of the Dockerfile with their arguments, in order."""
    text = (REPOSITORY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines)]


def arguments(instruction: str) -> list[str]:
    """Returns the arguments of every instruction of this name in the Dockerfile."""
    return [argument for word, argument in dockerfile() if word == instruction]


def image_environment() -> dict[str, str]:
    """Returns the environment that the image sets."""
    return dict(variable.split("=", 1) for variable in arguments("ENV"))


def port(address: str) -> int:
    """Returns the port of an address."""
    return int(address.rpartition(":")[2])
