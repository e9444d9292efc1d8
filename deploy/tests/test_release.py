"""Tests the parts of a release."""

import json
import re
import shutil
import subprocess
import sys
import tarfile

import pytest
from servers import REPOSITORY
from sources import DEPLOY

sys.path.insert(0, str(DEPLOY / "release"))

from sbom import sbom
from version import places, release_notes, version

from release import write_archive


def test_every_place_has_the_version_of_cargo_toml():
    wrong = [(file, said) for file, said in places() if said != version()]
    assert not wrong, f"Cargo.toml has version {version()}; set it in {wrong}"


def test_the_changelog_has_a_section_for_the_version():
    notes = release_notes()
    assert len(notes) > 200 and "\n## " not in notes, notes


def test_an_archive_is_the_same_for_the_same_content(tmp_path):
    folder = tmp_path / "content"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner/file").write_text("text")
    (folder / "program").write_text("program")
    (folder / "program").chmod(0o755)
    first, second = tmp_path / "one.tar.gz", tmp_path / "two.tar.gz"
    write_archive(first, folder, "name", 1_000_000_000)
    (folder / "inner/file").touch()
    write_archive(second, folder, "name", 1_000_000_000)
    assert first.read_bytes() == second.read_bytes()
    with tarfile.open(first) as archive:
        entries = {entry.name: entry for entry in archive}
        assert list(entries) == ["name/inner", "name/inner/file", "name/program"]
        assert entries["name/program"].mode == 0o755
        assert archive.extractfile("name/inner/file").read() == b"text"


@pytest.fixture(scope="module")
def document() -> dict:
    return sbom()


def test_the_sbom_lists_what_the_programs_are_built_of(document):
    metadata = ["cargo", "metadata", "--format-version=1", "--locked"]
    done = subprocess.run(metadata, cwd=REPOSITORY, capture_output=True, text=True, check=True)
    packages = json.loads(done.stdout)["packages"]
    licences = {(each["name"], each["version"]): each["license"] for each in packages}
    listed = {(each["name"], each["version"]): each for each in document["components"]}
    names = {name for name, _ in listed}
    assert {"tonic", "ort", "prost", "hlorank-graph", "onnxruntime"} <= names
    assert not {"proptest", "hlorank-tests"} & names, "tests are not shipped"
    for key, component in listed.items():
        if key[0] != "onnxruntime":
            expression = component["licenses"][0]["expression"]
            assert expression == licences[key].replace("/", " OR "), key


def test_components_have_a_licence_and_a_checksum(document):
    references = set()
    for component in document["components"]:
        references.add(component["bom-ref"])
        assert component["licenses"], component
        own = component["name"].startswith("hlorank-") or component["name"] == "onnxruntime"
        assert own or re.fullmatch("[0-9a-f]{64}", component["hashes"][0]["content"]), component
    assert len(references) == len(document["components"]), "references are unique"
    named = {each["ref"] for each in document["dependencies"]}
    for edge in document["dependencies"]:
        assert set(edge["dependsOn"]) <= named, edge
    assert json.loads(json.dumps(document))["specVersion"] == "1.6"


def test_a_release_needs_a_committed_tree(tmp_path):
    """The script refuses before it writes anything, in a copy of the repository with a change."""
    copy, out = tmp_path / "repository", tmp_path / "out"
    shutil.copytree(DEPLOY / "release", copy / "deploy/release")
    shutil.copy(REPOSITORY / "Cargo.toml", copy)
    subprocess.run(["git", "init", "--quiet", copy], check=True)
    out.mkdir()
    script = [sys.executable, copy / "deploy/release/release.py", out]
    refused = subprocess.run(script, capture_output=True, text=True)
    assert refused.returncode == 1 and "not committed" in refused.stderr, refused.stderr
    assert not list(out.iterdir())
