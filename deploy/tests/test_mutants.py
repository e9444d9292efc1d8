"""tests/results/mutants.txt, to which `make mutants` adds what it finds."""

import subprocess
from collections import Counter

import pytest
from mutants import RESULTS, Results, folder
from servers import REPOSITORY

TEXT = RESULTS.read_text()
RESULT = Results(TEXT)


def test_every_survivor_has_a_reason():
    assert [name for name, reason in RESULT.survivors if not reason] == []


def test_counts_agree_with_the_list():
    listed = Counter(folder(name) for name, _ in RESULT.survivors)
    assert listed == Counter({name: counts["missed"] for name, counts in RESULT.folders.items()})
    assert RESULT.text() == TEXT


def test_survivors_of_the_same_shards_become_fewer():
    before = next((text for text in versions() if text != TEXT), None)
    if before is None:
        pytest.skip("git has no other version of tests/results/mutants.txt")
    results = Results(before)
    if set(results.shards) != set(RESULT.shards):
        pytest.skip(f"the last version has shards {results.shards}, this one {RESULT.shards}")
    more = {
        name: counts["missed"]
        for name, counts in RESULT.folders.items()
        if counts["missed"] > results.folders.get(name, Counter())["missed"]
    }
    assert more == {}


def versions():
    """The committed versions of the file, the last first."""
    path = RESULTS.relative_to(REPOSITORY)
    commits = git("log", "--format=%H", "--", path)
    return (git("show", f"{commit}:{path}") for commit in commits.split())


def git(*arguments) -> str:
    """What git prints, or nothing if it fails."""
    return subprocess.run(
        ["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False
    ).stdout
