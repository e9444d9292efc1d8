"""Reads the settings of the server from its help, and those that the image sets."""

import re
import subprocess
import tomllib

from servers import REPOSITORY, server_program

DEPLOY = REPOSITORY / "deploy"

_VERSION = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]["package"]["version"]
IMAGE = f"hlorank:{_VERSION}"

# Turns off the telemetry of ONNX Runtime.
NO_TELEMETRY = {"ORT_DISABLE_TELEMETRY": "1"}


def server_settings() -> dict[str, str]:
    """Returns every variable that the server reads, with its default as text."""
    help_text = subprocess.run(
        [server_program(), "--help"], env={}, capture_output=True, text=True, check=True
    ).stdout
    return dict(re.findall(r"\[env: (HLORANK_[A-Z_]+)=?\]\s*\[default: ([^\]]*)\]", help_text))


def foreign_variables(variables: dict[str, str | None]) -> dict[str, str | None]:
    """Returns the variables that the server does not read."""
    known = server_settings()
    return {name: value for name, value in variables.items() if name not in known}


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
