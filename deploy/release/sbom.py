"""What the programs are built of, as a CycloneDX document."""

import re
import subprocess
import tomllib
from dataclasses import dataclass, field

from version import REPOSITORY, version

PROGRAMS = ("hlorank-server", "hlorank-cli")
TARGET = "x86_64-unknown-linux-gnu"


@dataclass
class Crate:
    """A crate of the programs, and the crates that it uses."""

    name: str
    version: str
    licence: str
    uses: set[str] = field(default_factory=set)
    kind: str = "cargo"

    @property
    def reference(self) -> str:
        """The name of the crate in the document."""
        return f"pkg:{self.kind}/{self.name}@{self.version}"


def sbom() -> dict:
    """Returns the document: every crate that the programs are built of, and ONNX Runtime."""
    crates = _crates()
    lock = tomllib.loads((REPOSITORY / "Cargo.lock").read_text())
    checksums = {
        (package["name"], package["version"]): package["checksum"]
        for package in lock["package"]
        if "checksum" in package
    }
    programs = [crate for crate in crates.values() if crate.name in PROGRAMS]
    components = [
        _component(crate, checksums) for crate in crates.values() if crate not in programs
    ]
    # ONNX Runtime as the image and the archive hold it.
    pinned = (REPOSITORY / "deploy/onnxruntime-requirements.txt").read_text()
    (number,) = set(re.findall(r"onnxruntime==([\d.]+)", pinned))
    onnxruntime = Crate("onnxruntime", number, "MIT", kind="pypi")
    components.append(_component(onnxruntime, checksums))
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "hlorank",
                "name": "hlorank",
                "version": version(),
                "licenses": [{"expression": "Apache-2.0"}],
                "components": [_component(crate, checksums) for crate in programs],
            }
        },
        "components": components,
        "dependencies": [
            {"ref": "hlorank", "dependsOn": sorted(crate.reference for crate in programs)},
            *({"ref": each.reference, "dependsOn": sorted(each.uses)} for each in crates.values()),
        ],
    }


def _crates() -> dict[str, Crate]:
    """Reads Cargo's tree, which has only what the enabled features need; tests have others."""
    tree = ["cargo", "tree", "--locked", "--edges=normal", "--prefix=depth", f"--target={TARGET}"]
    packages = [f"--package={program}" for program in PROGRAMS]
    printed = subprocess.run(
        [*tree, *packages, "--format=|{p}|{l}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    crates: dict[str, Crate] = {}
    path: list[Crate] = []
    for line in filter(None, printed.splitlines()):
        depth, package, licence = line.split("|")
        name, number = package.split()[:2]
        # A crate whose dependencies were listed before is marked.
        crate = Crate(name, number.removeprefix("v"), licence.removesuffix(" (*)"))
        crate = crates.setdefault(crate.reference, crate)
        path[int(depth) :] = [crate]
        if len(path) > 1:
            path[-2].uses.add(crate.reference)
    return dict(sorted(crates.items()))


def _component(crate: Crate, checksums: dict[tuple[str, str], str]) -> dict:
    component = {
        "type": "library",
        "bom-ref": crate.reference,
        "name": crate.name,
        "version": crate.version,
        "purl": crate.reference,
        # Old crates write a slash for OR.
        "licenses": [{"expression": crate.licence.replace("/", " OR ")}],
    }
    checksum = checksums.get((crate.name, crate.version))
    if checksum:
        component["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return component
