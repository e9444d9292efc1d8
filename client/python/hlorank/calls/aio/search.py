"""The search for a fast configuration of a space."""

import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager

from hlorank.answers.adaptation import Adaptation
from hlorank.answers.models import ModelReference
from hlorank.answers.ranking import Ranking
from hlorank.answers.tables import table
from hlorank.calls.aio.calls import AsyncCalls
from hlorank.calls.aio.experience import AsyncExperience
from hlorank.calls.fallback import Fallback
from hlorank.checks.arguments import instance, number, whole_number, wrong
from hlorank.checks.errors import ArgumentError
from hlorank.configurations.adapt import Result
from hlorank.spaces.space import Configuration, Space, Value
from hlorank.wire.transport import AsyncLock, Connected


class AsyncSpaceSearch(Connected):
    """The search for a fast configuration of a space; threads may share it.

    What is reported is kept by the server if it has a store, for later searches on this target, and
    otherwise here.
    """

    def __init__(
        self,
        client: AsyncCalls,
        space: Space,
        target: str,
        *,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        model: ModelReference | str | None = None,
        seed: int = 0,
        fallback: Fallback | None = None,
    ):
        self.space = instance(space, Space, "space", "a hlorank.Space")
        self._experience: AsyncExperience[int] = AsyncExperience(
            client,
            space.graph,
            space.configurations,
            target,
            model,
            seed,
            other_targets=other_targets,
            all_other_targets=all_other_targets,
            fallback=fallback,
        )
        self._pending: dict[int, None] = {}
        """Suggestions that were not reported yet, in the order made."""
        # Two threads must not get the same suggestion.
        self._suggesting = AsyncLock()

    @property
    def best(self) -> tuple[dict[str, Value], float] | None:
        """The fastest configuration that was reported here, and its seconds; None before any."""
        best = self._experience.best
        return None if best is None else (self.space[best[0]], best[1])

    @property
    def adaptation(self) -> Adaptation | None:
        """What the last suggestions or the last ranking rest on; None before any."""
        return self._experience.adaptation

    @property
    def is_lost(self) -> bool:
        """Whether the last call had no answer, so that what ``fallback`` names goes on."""
        return self._experience.is_lost

    async def suggest(
        self, count: int = 1, *, timeout: float | str | None = None
    ) -> list[dict[str, Value]]:
        """Returns the configurations to measure next; fewer than asked for if no more are left.

        What was suggested is not suggested again. Report each, also if it failed.

        Args:
            count: Number of suggestions, from 1 to 64.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        async with self._suggesting:
            numbers = await self._experience.suggest(
                self.space.configurations(), count, list(self._pending), timeout=timeout
            )
            self._pending |= dict.fromkeys(numbers or ())
        return [self.space[number] for number in numbers or ()]

    async def report(
        self,
        configuration: Configuration | int,
        seconds: float | None = None,
        *,
        failure: str | None = None,
        repeats: int = 1,
    ) -> None:
        """Adds what came of measuring a configuration, which need not be a suggested one.

        Args:
            configuration: The values of its parameters, or its number in the space.
            seconds: Mean run time, from 1e-12 to 1e9.
            failure: How it failed instead: ``compile``, ``crash``, ``wrong_result`` or ``timeout``.
            repeats: Number of runs that the time is the mean of.

        Raises:
            ArgumentError: if the space does not have it, or there is neither time nor failure.
            RefusedError: if the call ends with an error status, and there is no fallback. This
                search knows it nevertheless.
        """
        if (seconds is None) == (failure is None):
            raise ArgumentError("a measurement has either seconds or a failure")
        place = self.space.number(configuration)
        # A Result has 0 for a failure.
        if seconds is not None and number(seconds, "seconds") == 0:
            raise wrong("seconds", seconds, "seconds, from 1e-12 to 1e9")
        result = Result(seconds or 0.0, failure, repeats)
        # Added first: the search knows it even if no report reaches the server.
        error = await self._experience.add([place], [result])
        self._pending.pop(place, None)
        # A server without a store is no error: what was measured is sent with every call.
        if error is not None and not self._experience.kept.is_off:
            raise error

    async def rank(self, top_k: int = 10, *, timeout: float | str | None = None) -> Ranking | None:
        """Ranks the whole space by what is known; ``best`` has numbers in the space.

        Returns None if the server is away, and there is a fallback.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        return await self._experience.rank(self.space.configurations(), top_k, timeout=timeout)

    async def predicted_best(
        self, *, timeout: float | str | None = None
    ) -> dict[str, Value] | None:
        """Returns the configuration that is predicted to be the fastest, measured or not.

        Returns None if nothing is known. Measure it first to begin where others ended, since
        ``suggest`` leaves out what was measured.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        ranking = await self.rank(1, timeout=timeout)
        if ranking is None or ranking.adaptation is None or not ranking.adaptation.rests_on:
            return None
        return self.space[int(ranking.best[0])]

    async def run(
        self,
        measure: Callable[[dict[str, Value]], Awaitable[float | str]],
        measurements: int,
    ) -> tuple[dict[str, Value], float] | None:
        """Measures what is suggested, and returns the fastest configuration and its seconds.

        Ctrl-C ends it after what was measured so far. It can be called again, and goes on with what
        was not measured yet. On a terminal, a line says how far it is, earlier runs included.

        Args:
            measure: Returns the seconds of a configuration, or how it failed.
            measurements: How many to make, beside earlier ones; fewer if no more are left, or if
                the server is away and there is a fallback.
        """
        total = whole_number(measurements, "measurements", least=1)
        if not callable(measure):
            raise wrong("measure", measure, "a function of a configuration")
        with _progress(len(self._experience.measured), total) as show:
            try:
                for made in range(1, total + 1):
                    suggested = await self.suggest()
                    if not suggested:
                        break
                    for configuration in suggested:
                        try:
                            outcome = await measure(configuration)
                        except BaseException:
                            # It may be suggested again, since nothing is known of it.
                            self._pending.pop(self.space.number(configuration), None)
                            raise
                        if isinstance(outcome, str):
                            await self.report(configuration, failure=outcome)
                        else:
                            await self.report(configuration, outcome)
                    show(made, None if self.best is None else self.best[1])
            except KeyboardInterrupt:
                pass  # what was measured is reported, and the caller goes on with the best of it
        return self.best

    def __repr__(self) -> str:
        best = self.best
        rows = [] if best is None else [*best[0].items(), ("seconds", best[1])]
        title = f"Search of {self.space.name!r} on {self._experience.kept.target!r}, the best:"
        return table(title, ("parameter", "value"), rows, len(rows))


@contextmanager
def _progress(earlier: int, measurements: int) -> Iterator[Callable[[int, float | None], None]]:
    """Writes over and over one line to standard error, if that is a terminal: how many measurements
    are made, with earlier ones, and the shortest time."""
    if not sys.stderr.isatty():
        yield lambda made, seconds: None
        return

    def show(made: int, seconds: float | None) -> None:
        fastest = "nothing ran yet" if seconds is None else f"fastest {seconds:.6g} s"
        counted = f"{earlier + made} of {earlier + measurements}"
        sys.stderr.write(f"\r{counted} measured, {fastest}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\n")
