"""Where a program's time goes, as the model predicts it: the kernels of a run's candidates."""

from typing import Any

from hlorank import HlorankError, KernelTime
from hlorank_tune.predictor import Predictor
from hlorank_tune.run import Run
from hlorank_tune.xla.fusions import FusionProblem


def explained(problem: FusionProblem, predictor: Predictor, run: Run) -> dict[str, Any]:
    """Returns a row for the journal: the kernels of the default and of the winner.

    A kernel has the name of the instruction that it writes, the number of instructions that it
    computes, and its predicted seconds; the longest comes first. If the server does not answer,
    the row lists no candidate.
    """
    written = [run.default]
    if run.best and run.winner and run.winner.candidate != run.default:
        written.append(run.winner.candidate)
    try:
        found = predictor.kernels([problem.read(one) for one in written])
    except HlorankError:
        found = []
    kernels = []
    for candidate, its_kernels in zip(written, found, strict=False):
        longest_first = sorted(its_kernels, key=lambda kernel: -kernel.seconds)
        kernels.append(
            {"candidate": candidate, "kernels": [_row(problem, k) for k in longest_first]}
        )
    return {"kernels": kernels, "seconds": run.seconds}


def _row(problem: FusionProblem, kernel: KernelTime) -> dict[str, Any]:
    name = problem.node_name(kernel.node)
    return {"name": name, "computed_nodes": kernel.computed_nodes, "seconds": kernel.seconds}
