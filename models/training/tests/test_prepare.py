import sys
from pathlib import Path

import pytest

pytest.importorskip("tqdm", reason="tqdm is not installed")

from hlorank_tune.measure.atomic_files import write_json

from hlorank_training.data.prepare import Prepared, prepare, split_sources
from hlorank_training.data.sources import Source

FEATURIZER = """#!{python}
import sys
digest = "{digest}"
if "--digest" in sys.argv:
    print(digest)
else:
    with open(sys.argv[sys.argv.index("--out") + 1], "a") as output:
        output.write(digest[0])
"""
"""Stands in for the hlorank program: a feature file names the digest, once per call."""


@pytest.fixture
def data(tmp_path) -> Path:
    folder = tmp_path / "data"
    for name, agreement in (("steady", 0.9), ("noisy", 0.1)):
        record = {"name": name, "family": "a", "tau_between_passes": agreement}
        write_json(folder / f"{name}.json", record)
        (folder / f"{name}.pb").touch()
    return folder


def prepare_with(digest: str, data: Path) -> Prepared:
    program = data.parent / "hlorank"
    program.write_text(FEATURIZER.format(python=sys.executable, digest=digest), encoding="utf-8")
    program.chmod(0o755)
    return prepare("layout", data, program)


def test_another_featurizer_featurizes_anew_and_the_same_one_does_not(data):
    first, second = "a" * 64, "b" * 64
    for digest in (first, first, second, first):
        prepared = prepare_with(digest, data)
        assert prepared.feature_digest == digest
        assert prepared.features["steady"].read_text() == digest[0]
        assert prepared.features["steady"].parent == data / "features" / digest[:16]


def test_graphs_whose_passes_disagree_are_left_out(data):
    assert list(prepare_with("a" * 64, data).features) == ["steady"]


def test_a_program_without_a_digest_is_refused(data):
    with pytest.raises(RuntimeError, match="expected a feature digest"):
        prepare_with("not a digest", data)


def source(name: str, family: str, part: str | None = None) -> Source:
    return Source(name, Path(f"{name}.pb"), None, name.split("/")[-1], family, part, None)


def test_all_collections_of_a_graph_are_for_the_same_use():
    names = [f"{folder}/g{i}" for folder in ("default", "random") for i in range(40)]
    parts = split_sources("layout", [source(name, f"family {name[-1]}") for name in names])
    for use in (parts.train, parts.validation, parts.test, parts.unseen_family):
        both = [{name.split("/")[-1] for name in use if name.startswith(f)} for f in "dr"]
        assert both[0] == both[1] != set()


def test_folders_of_tpugraphs_say_what_a_graph_is_for():
    found = [source(f"{part}/g", "f", part) for part in ("train", "validation", "test")]
    parts = split_sources("tile", found)
    assert parts.train == ("train/g",)
    assert parts.validation == ("validation/g",)
    assert parts.test == ("test/g",)


def test_a_folder_without_graphs_says_what_to_do(tmp_path):
    (tmp_path / "data").mkdir()
    with pytest.raises(RuntimeError, match="collect some"):
        prepare_with("a" * 64, tmp_path / "data")
