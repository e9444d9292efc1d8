"""Quality of a model on held-out graphs, as recorded in its manifest."""

from collections.abc import Sequence
from typing import Any

from hlorank_training.data.prepare import Prepared
from hlorank_training.judging.evaluate import GraphQuality, Score, evaluate, summary
from hlorank_training.reports.tables import QUALITY_HEAD, markdown, quality_cells, without_model

HOW = "whole graphs held out, chosen by the SHA-256 of their names"
HOW_FOLDERS = "whole graphs held out, as the folders of the data set say"


def held_out_quality(prepared: Prepared, score: Score) -> dict[str, Any]:
    """Returns means over the held-out graphs with the noise ceiling, and figures of every graph.

    Means over families without any training graph are separate, under ``unseen_family.``.
    """
    qualities = evaluate(prepared.graphs(prepared.split.test), score)
    unseen = [q for q in qualities if q.name in prepared.split.unseen_family]
    known = [q for q in qualities if q.name not in prepared.split.unseen_family]
    folders = any(source.part for source in prepared.sources.values())
    measured = {"split": HOW_FOLDERS if folders else HOW} | _means(prepared, known)
    if unseen:
        measured |= {f"unseen_family.{k}": v for k, v in _means(prepared, unseen).items()}
    return {"measured_quality": measured, "per_graph": {q.name: q.values for q in qualities}}


def _means(prepared: Prepared, qualities: Sequence[GraphQuality]) -> dict[str, Any]:
    """Returns means under flat keys, since the server transmits a map of names to numbers."""
    ceilings = [prepared.sources[quality.name].noise_ceiling for quality in qualities]
    known = [ceiling for ceiling in ceilings if ceiling is not None]
    means = summary(qualities)
    return means | ({"noise_ceiling": round(sum(known) / len(known), 4)} if known else {})


def quality_table(prepared: Prepared, quality: dict[str, Any]) -> str:
    """Returns a Markdown table of every held-out graph and the means, with noise ceilings."""
    measured = quality["measured_quality"]
    rows = [
        [name, *quality_cells(values), _ceiling(prepared.sources[name].noise_ceiling)]
        for name, values in sorted(quality["per_graph"].items())
    ]
    for label, prefix in (("mean", ""), ("mean, unseen families", "unseen_family.")):
        if f"{prefix}kendall_tau" in measured:
            ceiling = _ceiling(measured.get(f"{prefix}noise_ceiling"))
            rows.append([label, *quality_cells(measured, prefix), ceiling])
    rows += [[*row, ""] for row in without_model(measured)]
    return markdown(["", *QUALITY_HEAD, "noise ceiling"], rows)


def _ceiling(tau: float | None) -> str:
    return "" if tau is None else f"{tau:.2f}"
