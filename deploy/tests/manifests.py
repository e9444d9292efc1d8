"""Reads and validates Kubernetes manifests."""

from pathlib import Path

import kubernetes_validate
import yaml

# The oldest version that supports the manifests, and the newest with published schemas.
KUBERNETES_VERSIONS = ["1.30", "1.37"]


def read(file: Path) -> list[dict]:
    """Returns the documents of one file."""
    return [document for document in yaml.safe_load_all(file.read_text()) if document]


def validate(documents: list[dict], versions: list[str] = KUBERNETES_VERSIONS) -> None:
    """Validates documents by Kubernetes' schemas, in which unknown fields are errors."""
    for document in documents:
        for version in versions:
            kubernetes_validate.validate(document, version, strict=True)


def by_kind(documents: list[dict]) -> dict[str, dict]:
    """Returns the documents by kind and name."""
    return {f"{d['kind']}/{d['metadata']['name']}": d for d in documents}


def container(deployment: dict) -> dict:
    """Returns the only container of a deployment."""
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    return container


def environment(deployment: dict) -> dict[str, str | None]:
    """Returns the variables of the container, None for those that Kubernetes fills in."""
    return {variable["name"]: variable.get("value") for variable in container(deployment)["env"]}
