"""Adds the outcomes of `make mutants` to tests/results/mutants.txt.

Usage: mutants.py OUTCOMES [ARGUMENTS OF CARGO MUTANTS]

The mutants of a shard are added, instead of those of its package if that had another number of
shards. Any other run, such as that of a better test, only removes survivors that it caught.
A new survivor has no reason until somebody writes one after its `--`.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

RESULTS = Path(__file__).resolve().parent / "results/mutants.txt"
HEADING = """\
Mutants: small changes, such as `<` for `<=`, of code without files and networks. For each that
compiles, a test of the same package should fail or not end. Shards of a package are added one by
one, by `make mutants ARGS='--package hlorank-graph --shard 3/120'`. A survivor that a new test
catches counts as caught, so only the next shard says how many of the rest are.
"""
OUTCOMES = {
    "CaughtMutant": "caught",
    "MissedMutant": "missed",
    "Timeout": "timeout",
    "Unviable": "unviable",
}


class Results:
    """The shards that were tested, the outcomes per folder, and the survivors with reasons."""

    def __init__(self, text: str) -> None:
        """Reads what `text` writes."""
        self.shards: list[str] = re.findall(r"^Shard (.+)$", text, re.MULTILINE)
        self.survivors: list[tuple[str, str]] = re.findall(
            r"^(\S+\.rs: .+?) --(?: (.+))?$", text, re.MULTILINE
        )
        self.folders: dict[str, Counter[str]] = {}
        for name, cells in re.findall(r"^\| (\w+/\S+) \|(.+)\|$", text, re.MULTILINE):
            _, *counts, _ = cells.split("|")
            numbers = map(int, counts)
            self.folders[name] = Counter(dict(zip(OUTCOMES.values(), numbers, strict=True)))

    def add_shard(self, shard: str, mutants: list[tuple[str, str]]) -> None:
        """Adds mutants of one package, by name and outcome."""
        (package,) = {name.partition("/src/")[0] for name, _ in mutants}
        reasons = dict(self.survivors)
        if f"{package} {shard}" in self.shards:
            raise ValueError(f"shard {shard} of {package} was added before")
        number = shard.partition("/")[2]
        earlier = [each for each in self.shards if each.startswith(f"{package} ")]
        if not all(each.endswith(f"/{number}") for each in earlier):
            self.remove(package)
        self.shards.append(f"{package} {shard}")
        for name, outcome in mutants:
            self.folders.setdefault(folder(name), Counter())[outcome] += 1
            if outcome == "missed":
                self.survivors.append((name, reasons.get(name, "")))

    def remove(self, package: str) -> None:
        """Removes the mutants of a package."""
        sources = f"{package}/src"
        self.shards = [shard for shard in self.shards if not shard.startswith(f"{package} ")]
        self.survivors = [each for each in self.survivors if not each[0].startswith(sources)]
        for name in [name for name in self.folders if name.startswith(sources)]:
            del self.folders[name]

    def remove_caught(self, mutants: list[tuple[str, str]]) -> None:
        """Counts survivors as caught if no mutant of their name was missed."""
        missed = {name for name, outcome in mutants if outcome == "missed"}
        caught = {name for name, _ in mutants} - missed
        for name, _ in self.survivors:
            if name in caught:
                self.folders[folder(name)].update(missed=-1, caught=1)
        self.survivors = [survivor for survivor in self.survivors if survivor[0] not in caught]

    def text(self) -> str:
        """The file."""
        rows = [*sorted(self.folders.items()), ("all", sum(self.folders.values(), Counter()))]
        survivors = [f"{name} -- {reason}".rstrip() for name, reason in sorted(self.survivors)]
        return "\n".join(
            [
                HEADING,
                *(f"Shard {shard}" for shard in sorted(self.shards)),
                f"\n| folder | tested | {' | '.join(OUTCOMES.values())} | caught in % |",
                "|---|" + "---:|" * (len(OUTCOMES) + 2),
                *(row(*cells) for cells in rows),
                "\nSurvivors, and why no test catches them:\n",
                *(survivors or ["none"]),
                "",
            ]
        )


def folder(name: str) -> str:
    """The folder of a mutant, whose name begins with its file."""
    return str(Path(name.partition(":")[0]).parent)


def row(name: str, outcomes: Counter[str]) -> str:
    """The line of a folder in the table."""
    counts = [outcomes[outcome] for outcome in OUTCOMES.values()]
    compiled = sum(counts) - outcomes["unviable"]
    share = round(100 * (compiled - outcomes["missed"]) / max(compiled, 1))
    return f"| {name} | {sum(counts)} | {' | '.join(map(str, counts))} | {share} |"


def main(run: str, *arguments: str) -> None:
    """Adds a run to the file."""
    results = Results(RESULTS.read_text() if RESULTS.exists() else "")
    # Without line and column, which change with every line above.
    mutants = [
        (
            re.sub(r":\d+:\d+: ", ": ", outcome["scenario"]["Mutant"]["name"], count=1),
            OUTCOMES[outcome["summary"]],
        )
        for outcome in json.loads(Path(run).read_text())["outcomes"]
        if outcome["scenario"] != "Baseline"
    ]
    if shard := re.search(r"--shard[ =](\S+)", " ".join(arguments)):
        results.add_shard(shard[1], mutants)
    else:
        results.remove_caught(mutants)
    RESULTS.write_text(results.text())


if __name__ == "__main__":
    main(*sys.argv[1:])
