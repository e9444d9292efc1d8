"""Simulated annealing of fusions, by predicted or measured times."""

import numpy as np

from hlorank_tune.xla.fusion_space import FusionSpace
from hlorank_tune.xla.layout_space import Candidates


class FusionAnnealing:
    """Chains from what is given and, at least half of them, from random candidates.

    A step evaluates several neighbours of each chain's candidate at once, to which the chain then
    moves one after the other. A move for the worse has a probability that falls with its size and
    with time.
    """

    _NEIGHBOURS = 8
    """Neighbours of one chain in a step."""
    _HOT = 0.05
    _COLD = 0.001
    """First and last temperature, relative to the cost of the first start."""

    def __init__(
        self,
        space: FusionSpace,
        random: np.random.Generator,
        batch: int,
        steps: int,
        start: Candidates,
    ):
        """Evaluates ``batch`` candidates in each of ``steps`` steps."""
        self._space = space
        self._random = random
        chains = max(1, batch // self._NEIGHBOURS)
        given = space.chosen(start[: -(-chains // 2)])
        self._current = np.concatenate([given, space.random(random, chains - len(given))])
        self._costs = np.full(chains, np.inf)
        self._temperatures = np.geomspace(self._HOT, self._COLD, max(steps, 2)).tolist()
        self._scale = 0.0
        self._chains = np.arange(chains)

    def ask(self) -> Candidates:
        """Returns the starts, and then neighbours of every chain's candidate."""
        if not self._scale:
            return self._current.copy()
        self._chains = np.repeat(np.arange(len(self._current)), self._NEIGHBOURS)
        return self._space.mutated(self._random, self._current[self._chains])

    def update(self, candidates: Candidates, costs: np.ndarray) -> None:
        """Moves the chains."""
        temperature = self._temperature(costs)
        for chain, candidate, cost in zip(self._chains, candidates, costs.tolist(), strict=False):
            # An infinite cost is never better, and every finite one is better than it.
            worse = max(cost - self._costs[chain], 0.0) if np.isfinite(cost) else np.inf
            if self._random.random() < np.exp(-worse / temperature):
                self._current[chain] = candidate
                self._costs[chain] = cost

    def _temperature(self, costs: np.ndarray) -> float:
        temperatures = self._temperatures
        if self._scale:
            relative = temperatures.pop(0) if len(temperatures) > 1 else temperatures[0]
            return relative * self._scale
        finite = costs[np.isfinite(costs)]
        self._scale = float(finite[0]) if len(finite) else 1.0
        return temperatures[0] * self._scale
