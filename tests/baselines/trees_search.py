"""A search by boosted trees: expected improvement, with the spread of bootstrap samples."""

import numpy as np
import xgboost
from scipy.stats import norm

from measured_spaces import BUDGET, Space

_FIRST = 10
_PICKS = 5
_ENSEMBLES = 5
_ROUNDS = 40
_BOOSTER = {
    "max_depth": 3,
    "eta": 0.15,
    "subsample": 0.8,
    "colsample_bytree": 0.8,
    "nthread": 1,
    "verbosity": 0,
}
_LEAST_DEVIATION = 0.02
_FAILURE = 0.2
"""By how much the logarithm of a failure is above that of the slowest time."""


def search(space: Space, seed: int) -> list[int]:
    """The configurations that are measured, in order.

    The first ten are random, then five have the largest expected improvement of each fit.
    """
    random = np.random.default_rng(seed)
    every = xgboost.DMatrix(space.parameters, nthread=1)
    order = random.choice(len(space.seconds), _FIRST, replace=False).tolist()
    while len(order) < BUDGET:
        improvement = _expected_improvement(space, np.array(order), every, random)
        improvement[order] = -1
        order += np.argsort(-improvement, kind="stable")[:_PICKS].tolist()
    return order[:BUDGET]


def _expected_improvement(
    space: Space, measured: np.ndarray, every: xgboost.DMatrix, random: np.random.Generator
) -> np.ndarray:
    logs = _logs(space.seconds[measured])
    predictions = []
    for ensemble in range(_ENSEMBLES):
        sample = random.integers(0, len(measured), len(measured))
        booster = _fit(space.parameters[measured[sample]], logs[sample], ensemble)
        predictions.append(booster.predict(every))
    mean = np.mean(predictions, 0)
    deviation = np.std(predictions, 0) + _LEAST_DEVIATION
    z = (logs.min() - mean) / deviation
    return deviation * (z * norm.cdf(z) + norm.pdf(z))


def _logs(seconds: np.ndarray) -> np.ndarray:
    logs = np.log(seconds)
    ran = np.isfinite(logs)
    slowest = logs[ran].max() if ran.any() else 0.0
    return np.where(ran, logs, slowest + _FAILURE)


def _fit(parameters: np.ndarray, logs: np.ndarray, seed: int) -> xgboost.Booster:
    options = _BOOSTER | {"seed": seed, "base_score": float(logs.mean())}
    return xgboost.train(options, xgboost.DMatrix(parameters, logs, nthread=1), _ROUNDS)
