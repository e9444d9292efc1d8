"""How two model versions rank what a server keeps of measurements."""

from dataclasses import dataclass
from typing import Any, Literal

from hlorank.arguments import text
from hlorank.messages import CompareModelsRequest
from hlorank.model import ModelReference, answered_reference, model_reference

Better = Literal["first", "second"]
_VERDICTS: dict[int, Better] = {2: "first", 3: "second"}
"""The numbers of ``Verdict``."""


@dataclass(frozen=True)
class ComparedMean:
    """The means of a measure over graphs."""

    first: float
    """That of the first version."""
    second: float
    """That of the second version."""
    difference: tuple[float, float]
    """95 % interval of the second mean minus the first."""


@dataclass(frozen=True)
class Comparison:
    """How two versions rank the same measurements."""

    first: ModelReference
    second: ModelReference
    graphs: int
    """Number of graphs that both versions ranked."""
    configs: int
    """Number of their distinct measured configurations."""
    kendall_tau: ComparedMean
    """Kendall's tau of scores and run times: 1 for the same order."""
    ordered_pairs: ComparedMean
    """Share of the pairs of different run times in the right order."""
    top_pick_regret: ComparedMean
    """Slowdown of the measured configuration with the best score: 0.1 for 10 %."""
    better: Better | None
    """Which version ranks better by Kendall's tau; None if that is undecided."""


def compare_message(first: ModelReference | str, second: ModelReference | str, target: str) -> Any:
    """Returns the request that compares two versions."""
    return CompareModelsRequest(
        first=model_reference(first).selector(),
        second=model_reference(second).selector(),
        target=text(target, "target"),
    )


def comparison_of(answer: Any) -> Comparison:
    """Converts a ``CompareModelsResponse``. Raises AnswerError if it names no versions."""
    return Comparison(
        first=answered_reference(answer.first),
        second=answered_reference(answer.second),
        graphs=answer.graphs,
        configs=answer.configs,
        kendall_tau=_mean_of(answer.kendall_tau),
        ordered_pairs=_mean_of(answer.ordered_pairs),
        top_pick_regret=_mean_of(answer.top_pick_regret),
        better=_VERDICTS.get(answer.verdict),
    )


def _mean_of(mean: Any) -> ComparedMean:
    return ComparedMean(mean.first, mean.second, (mean.difference_low, mean.difference_high))
