"""A search by Optuna's tree-structured Parzen estimator."""

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from measured_spaces import BUDGET, Space

_REJECTIONS = 20
"""Proposals in a row that are rejected before the nearest valid one is taken instead."""


def search(space: Space, seed: int) -> list[int]:
    """The configurations that are measured, in order.

    A parameter is the place of its value among the ascending ones. Optuna knows no list of valid
    configurations: a proposal that is not valid or was measured is rejected, for nothing, and it
    proposes another. A configuration that failed has an infinite time, so it counts as the worst.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    largest = [len(values) - 1 for values in space.values.values()]
    domain: dict[str, BaseDistribution] = {
        name: IntDistribution(0, place) for name, place in zip(space.columns, largest, strict=True)
    }
    places, random = _places(space), np.random.default_rng(seed)
    order: list[int] = []
    rejected = 0
    while len(order) < BUDGET:
        proposal = study.ask(domain)
        # What is measured may be another configuration, which is added instead.
        study.tell(proposal, state=TrialState.FAIL)
        proposed = [proposal.params[name] for name in space.columns]
        distances = np.abs((places - proposed) / largest).sum(1)
        distances[order] = np.inf
        if distances.min() > 0 and rejected < _REJECTIONS:
            rejected += 1
            continue
        number = int(random.choice(np.flatnonzero(distances == distances.min())))
        order.append(number)
        rejected = 0
        parameters = dict(zip(space.columns, places[number].tolist(), strict=True))
        seconds = float(space.seconds[number])
        study.add_trial(create_trial(params=parameters, distributions=domain, value=seconds))
    return order


def _places(space: Space) -> np.ndarray:
    """The place of each value: i64 [n, p]."""
    columns = zip(space.values.values(), space.parameters.T, strict=True)
    return np.stack([np.searchsorted(values, column) for values, column in columns], 1)
