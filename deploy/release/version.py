"""The version of a release, every place that repeats it, and what changed."""

import re
import sys
import tomllib
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

_PLACES = {
    "client/python/pyproject.toml": r'^version = "(.*)"$',
    "client/tuner/pyproject.toml": r'^(?:version = |    "hlorank==)"?([\d.]+)"',
    "deploy/helm/hlorank/Chart.yaml": r"^(?:version|appVersion): (.*)$",
    "deploy/kubernetes/kustomization.yaml": r"newTag: (.*)$",
    "deploy/kubernetes/hlorank.yaml": r'image: "hlorank:(.*)"$',
    "deploy/README.md": r"hlorank:(\d+\.\d+\.\d+)",
    "README.md": r"hlorank-(\d+\.\d+\.\d+)-py3",
    "models/training/pyproject.toml": r'^version = "(.*)"$',
}
"""What cannot read the version from Cargo.toml has to repeat it."""


def version() -> str:
    """Returns the version of Cargo.toml, which decides."""
    workspace = tomllib.loads((REPOSITORY / "Cargo.toml").read_text())["workspace"]
    return workspace["package"]["version"]


def places() -> list[tuple[str, str]]:
    """Returns every file that repeats the version, with what it says."""
    found = []
    for file, pattern in _PLACES.items():
        said = re.findall(pattern, (REPOSITORY / file).read_text(), re.MULTILINE)
        found += [(file, each) for each in said or ["no version"]]
    return found


def release_notes() -> str:
    """Returns the section of the changelog about the version."""
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    for section in changes.split("\n## ")[1:]:
        title, _, text = section.partition("\n")
        if title.strip() == version():
            return text.strip() + "\n"
    sys.exit(f"release: CHANGELOG.md has no section {version()}; write what changed")
