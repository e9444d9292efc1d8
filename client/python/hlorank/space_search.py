"""Searches of a space, as ``Client.search`` and ``AsyncClient.search`` return them."""

import asyncio
from threading import Lock

from hlorank.adapt import Adaptation
from hlorank.blocking import run_to_end
from hlorank.parameter import Value
from hlorank.ranking import Ranking
from hlorank.space import Configuration
from hlorank.space_session import SpaceSession, outcome_of


class _Found:
    """What a search has found until now."""

    _session: SpaceSession

    @property
    def best(self) -> tuple[dict[str, Value], float] | None:
        """The fastest configuration that was reported here, and its seconds; None before any."""
        return self._session.best

    @property
    def adaptation(self) -> Adaptation | None:
        """What the last suggestions or the last ranking rest on; None before any."""
        return self._session.adaptation


class SpaceSearch(_Found):
    """The search for a fast configuration of a space; threads may share it.

    What is reported is kept by the server if it has a store, for later searches on this target, and
    otherwise here.
    """

    def __init__(self, session: SpaceSession):
        self._session = session
        self._turn = Lock()

    def suggest(self, count: int = 1, *, timeout: float | None = None) -> list[dict[str, Value]]:
        """Returns the configurations to measure next; fewer than asked for if no more are left.

        What was suggested is not suggested again. Report each, also if it failed.

        Args:
            count: Number of suggestions, at most 64.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        with self._turn:
            return run_to_end(self._session.suggest(count, timeout))

    def report(
        self,
        configuration: Configuration | int,
        seconds: float | None = None,
        *,
        failure: str | None = None,
        repeats: int = 1,
        timeout: float | None = None,
    ) -> None:
        """Adds what came of measuring a configuration, which need not be a suggested one.

        Args:
            configuration: The values of its parameters, or its number in the space.
            seconds: Mean run time, from 1e-12 to 1e9.
            failure: How it failed instead: ``compile``, ``crash``, ``wrong_result`` or ``timeout``.
            repeats: Number of runs that the time is the mean of.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            ArgumentError: if the space does not have it, or there is neither time nor failure.
            RefusedError: if the call ends with an error status. This search knows it nevertheless.
        """
        outcome = outcome_of(self._session.space, configuration, seconds, failure, repeats)
        with self._turn:
            run_to_end(self._session.report(outcome, timeout))

    def rank(self, top_k: int = 10, *, timeout: float | None = None) -> Ranking:
        """Ranks the whole space by what is known; ``best`` has numbers in the space.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        with self._turn:
            return run_to_end(self._session.rank(top_k, timeout))

    def predicted_best(self, *, timeout: float | None = None) -> dict[str, Value] | None:
        """Returns the configuration that is predicted to be the fastest, measured or not.

        Returns None if nothing is known. Measure it first to begin where others ended, since
        ``suggest`` leaves out what was measured.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        with self._turn:
            return run_to_end(self._session.predicted_best(timeout))


class AsyncSpaceSearch(_Found):
    """Works like ``SpaceSearch``."""

    def __init__(self, session: SpaceSession):
        self._session = session
        self._turn = asyncio.Lock()

    async def suggest(
        self, count: int = 1, *, timeout: float | None = None
    ) -> list[dict[str, Value]]:
        """Works like ``SpaceSearch.suggest``."""
        async with self._turn:
            return await self._session.suggest(count, timeout)

    async def report(
        self,
        configuration: Configuration | int,
        seconds: float | None = None,
        *,
        failure: str | None = None,
        repeats: int = 1,
        timeout: float | None = None,
    ) -> None:
        """Works like ``SpaceSearch.report``."""
        outcome = outcome_of(self._session.space, configuration, seconds, failure, repeats)
        async with self._turn:
            await self._session.report(outcome, timeout)

    async def rank(self, top_k: int = 10, *, timeout: float | None = None) -> Ranking:
        """Works like ``SpaceSearch.rank``."""
        async with self._turn:
            return await self._session.rank(top_k, timeout)

    async def predicted_best(self, *, timeout: float | None = None) -> dict[str, Value] | None:
        """Works like ``SpaceSearch.predicted_best``."""
        async with self._turn:
            return await self._session.predicted_best(timeout)
