"""Describes lone kernels: their times, and how far their sums are from the programs' times."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from hlorank_tune.measure.atomic_files import read_json

from hlorank_training.measuring.kernel_times import label
from hlorank_training.metrics.ranking import kendall_tau
from hlorank_training.reports.tables import markdown

CACHES = ("hot", "warm", "cold")
_COMPARED = {"ratio": ".2f", "MAPE": ".1%", "scaled": ".1%", "tau": ".2f"}
"""What compares sums with a program's times, and its format."""
_RANGES = ((0, 5e3), (5e3, 2e4), (2e4, 1e5), (1e5, 1e6), (1e6, np.inf))
"""Nanoseconds between which kernels are counted."""
_LEGEND = (
    "A sum adds the lone times of a configuration's kernels; it is compared with the program's "
    "run time minus that of a call. Ratio: of the sum to that time, the median over the program's "
    "configurations; MAPE: mean error relative to the program's time; scaled: the MAPE after one "
    "factor for the whole program; tau: agreement of the orders of configurations. Small kernels "
    "have one time only, which is in every sum."
)


def describe_kernels(folder: Path) -> str:
    """Returns Markdown on a folder with ``kernels`` and ``programs`` of fusions."""
    sums = [_Sums(folder, path.stem) for path in sorted((folder / "kernels").glob("*.json"))]
    records = list({kernel["digest"]: kernel for one in sums for kernel in one.kernels}.values())
    tables = [_times_table(records), _sums_table(sums), _LEGEND]
    return f"### {folder.name}: kernels\n\n" + "\n\n".join([_counts(records), *tables])


def _counts(records: Sequence[dict[str, Any]]) -> str:
    errors = [record["error"] for record in records if "error" in record]
    used = sum(label(record) is not None for record in records)
    crashes = sum(error.startswith("the compiler") for error in errors)
    return (
        f"{len(records):,} distinct kernels, of which {used:,} have a run time of at least 50 ns, "
        f"and {len(errors):,} have none ({crashes:,} because the compiler crashed or timed out)."
    )


def _times_table(records: Iterable[dict[str, Any]]) -> str:
    """Returns the kernels by run time, and how well the two passes agree."""
    passes = np.array([_passes(record) for record in records if label(record) is not None])
    rows = [
        [_range(low, high), *_agreement(passes[(low <= passes.min(1)) & (passes.min(1) < high)])]
        for low, high in _RANGES
        if len(passes)
    ]
    rows.append(["all", *_agreement(passes)])
    return markdown(["run time", "kernels", "tau of passes", "difference", "p90"], rows)


def _passes(record: dict[str, Any]) -> list[float]:
    return record.get("warm") or record["hot"]


def _agreement(passes: np.ndarray) -> list[str]:
    if len(passes) < 2:
        return [str(len(passes)), "", "", ""]
    difference = np.abs(passes[:, 0] - passes[:, 1]) / passes.min(1)
    tau = kendall_tau(passes[:, 0], passes[:, 1])
    spread = (f"{np.percentile(difference, percentile):.1%}" for percentile in (50, 90))
    return [f"{len(passes):,}", f"{tau:.3f}", *spread]


def _range(low: float, high: float) -> str:
    return f"{low / 1e3:g} µs and more" if high == np.inf else f"{low / 1e3:g} to {high / 1e3:g} µs"


@dataclass(frozen=True)
class _Sums:
    """The sums of a program's kernels, and its times."""

    folder: Path
    name: str

    @cached_property
    def _record(self) -> dict[str, Any]:
        return read_json(self.folder / "kernels" / f"{self.name}.json")

    @cached_property
    def _program(self) -> dict[str, Any]:
        return read_json(self.folder / "programs" / f"{self.name}.json")

    @property
    def kernels(self) -> list[dict[str, Any]]:
        """The program's kernels and their times."""
        return self._record["kernels"]

    @property
    def family(self) -> str:
        return self._program["family"]

    @property
    def tau_of_passes(self) -> float:
        return self._program["tau_between_passes"]

    @property
    def configurations(self) -> list[int]:
        """The configurations all of whose kernels were timed."""
        timed = {n for n, kernel in enumerate(self.kernels) if "error" not in kernel}
        runs = self._record["configurations"]
        return [n for n, kernels in enumerate(runs) if timed.issuperset(kernels)]

    @property
    def measured(self) -> np.ndarray:
        """Nanoseconds of these configurations, without the call."""
        both = np.array([self._program["first_pass"], self._program["second_pass"]])
        return (both.min(0) - self._program["call_nanoseconds"])[self.configurations]

    def sums(self, caches: str) -> np.ndarray:
        """Returns the sums of lone times, with the given state of the caches if there is one."""
        times = np.array(
            [min(kernel.get(caches) or kernel.get("hot", [0])) for kernel in self.kernels]
        )
        runs = self._record["configurations"]
        return np.array([times[runs[n]].sum() for n in self.configurations])


def _comparison(sums: np.ndarray, measured: np.ndarray) -> list[float]:
    """Returns the values of ``_COMPARED``."""
    factor = np.median(measured / sums)
    errors = (np.mean(np.abs(scaled - measured) / measured) for scaled in (sums, sums * factor))
    return [np.median(sums / measured), *errors, kendall_tau(sums, measured)]


def _sums_table(programs: Sequence[_Sums]) -> str:
    head = ["program", "family", "configurations"]
    head += [f"{caches} {what}" for caches in CACHES for what in _COMPARED]
    rows = []
    figures = []
    for program in programs:
        if len(program.configurations) < 2:
            continue
        values = [
            value
            for caches in CACHES
            for value in _comparison(program.sums(caches), program.measured)
        ]
        figures.append([*values, program.tau_of_passes])
        first = [program.name, program.family, str(len(program.configurations))]
        rows.append([*first, *_cells(figures[-1])])
    rows.append(["mean", "", "", *_cells(np.nanmean(figures, 0))])
    return markdown([*head, "tau of passes"], rows)


def _cells(values: Sequence[float]) -> list[str]:
    formats = [*_COMPARED.values()] * len(CACHES) + [_COMPARED["tau"]]
    return [format(value, form) for value, form in zip(values, formats, strict=True)]
