# Generated from search.py of ``aio``: change that one.
"""The search for a fast configuration of a space."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hlorank.answers.adaptation import Adaptation
from hlorank.answers.leases import GrantedLease, Lease, SearchState
from hlorank.answers.ranking import Ranking
from hlorank.answers.suggestions import Suggestions
from hlorank.answers.tables import table
from hlorank.calls.sync.calls import Calls
from hlorank.calls.sync.experience import Experience
from hlorank.calls.sync.family import family_policy
from hlorank.checks.arguments import flag, instance, number, several, whole_number, wrong
from hlorank.checks.errors import AnswerError, ArgumentError, RefusedError, is_no_store
from hlorank.configurations.adapt import Result
from hlorank.configurations.config_features import ConfigFeatures
from hlorank.configurations.described import DescribedConfigs
from hlorank.spaces.policy import Policy
from hlorank.spaces.space import Configuration, Space, Value
from hlorank.wire import defaults
from hlorank.wire.messages import ConfigSpace
from hlorank.wire.transport import Connected, SyncLock

_TRIES = 32
"""How often suggestions are asked for until functions among the constraints allow one."""


class SpaceSearch(Connected):
    """The search for a fast configuration of a space; threads may share it.

    What is reported is kept by the server if it has a store, for later searches on this target, and
    otherwise here.
    """

    def __init__(
        self,
        client: Calls,
        space: Space,
        target: str,
        *,
        lease: Lease | None = None,
        **options: Any,
    ):
        """``options`` are those of ``AsyncClient.search``."""
        self.space = instance(space, Space, "space", "a hlorank.Space")
        self._experience: Experience[int] = Experience(
            client,
            space.graph,
            space.configurations,
            target,
            lease=lease,
            **options,
        )
        self._lease = lease
        self.state: SearchState = ""
        """What the search is doing, by the last suggestions; empty without leases."""
        self.retry_after = 0.0
        """Seconds after which to ask again, if others measure all that is left."""
        self._pending: dict[int, GrantedLease | None] = {}
        """Suggestions that were not reported yet, in the order made."""
        # Two threads must not get the same suggestion.
        self._suggesting = SyncLock()

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

    @property
    def rests_on(self) -> str:
        """What the last suggestions or the last ranking rest on, and what the first pick is
        expected to lose, as text for people; empty if they rest on nothing."""
        return self._experience.rests_on

    def suggest(
        self,
        count: int = 1,
        *,
        pending: Sequence[Configuration | int] = (),
        timeout: float | None = None,
    ) -> list[dict[str, Value]]:
        """Returns the configurations to measure next; fewer than asked for if no more are left.

        What was suggested is not suggested again. Report each, also if it failed. With leases,
        ``state`` says why there is nothing.

        Args:
            count: Number of suggestions, from 1 to 64.
            pending: What others measure, of which the server knows nothing.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        with self._suggesting:
            others = [
                self.space.number(each) for each in several(pending, "pending", "configurations")
            ]
            wanted = whole_number(count, "count", 1)
            new: dict[int, GrantedLease | None] = {}
            for _ in range(_TRIES):
                found = self._suggested(wanted - len(new), others, timeout)
                new |= {number: each for number, each in found.items() if self._allows(number)}
                invalid = [number for number in found if number not in new]
                if not invalid:
                    return [self.space[number] for number in new]
                # It teaches where the space ends.
                leases = [self._pending[number] for number in invalid]
                self._add(
                    invalid,
                    [Result(failure="invalid", lease=one.id if one else b"") for one in leases],
                )
                if len(new) == wanted:
                    return [self.space[number] for number in new]
            if not new:
                raise ArgumentError(
                    "the functions among the constraints allow no suggestion; write them as text"
                )
        return [self.space[number] for number in new]

    def _suggested(
        self, count: int, others: Sequence[int], timeout: float | None
    ) -> dict[int, GrantedLease | None]:
        """Returns the numbers of new suggestions with their leases, which are pending from now."""
        # The server knows what is leased, and names it first, as to a worker without answer.
        leased = sum(lease is not None for lease in self._pending.values())
        asked = min(count + leased, defaults.SUGGESTED) if leased else count
        described = self.space.description
        if described is None:
            own = [number for number, lease in self._pending.items() if lease is None]
            found = self._experience.suggestions(
                self.space.configurations(), asked, [*own, *others], timeout=timeout
            )
        else:
            # What is leased too, of which the server knows digests alone.
            held = [*self._pending, *others][-defaults.PENDING :]
            pending = self.space.configurations(held) if held else None
            found = self._experience.suggestions(
                DescribedConfigs(described, pending), asked, timeout=timeout
            )
        if found is None:
            return {}
        self.state, self.retry_after = found.state, found.retry_after
        leases = found.leases or [None] * len(found.suggestions)
        numbers = self._numbers(found)
        pairs = zip(numbers, leases, strict=True)
        new = {number: lease for number, lease in pairs if number not in self._pending}
        self._pending |= new
        return new

    def _numbers(self, found: Suggestions) -> list[int]:
        """Returns the numbers of suggestions in the space."""
        if not isinstance(found.combinations, ConfigFeatures):
            return [each.config for each in found.suggestions]
        numbers = self.space.numbers(found.combinations)
        known = [number for number in numbers if number is not None]
        if len(known) < len(numbers):
            raise AnswerError("the server suggests what is not in the space")
        return known

    def _allows(self, number: int) -> bool:
        return not self.space.is_described or self.space.allows(self.space[number])

    def renew(self, *, give_back: bool = False, timeout: float | None = None) -> None:
        """Prolongs the leases of what was suggested and not reported, or gives them back.

        Args:
            give_back: Whether other workers may have the configurations at once.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        given_back = flag(give_back, "give_back")
        held = {number: lease for number, lease in [*self._pending.items()] if lease is not None}
        if self._lease is None or not held:
            return
        if given_back:
            for number in held:
                self._pending.pop(number, None)
        experience = self._experience
        experience.client.renew_leases(
            experience.graph,
            experience.kept.target,
            self._lease,
            [*held.values()],
            give_back=given_back,
            timeout=timeout,
        )

    def report(
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
            failure: How it failed instead: ``compile``, ``crash``, ``wrong_result``, ``timeout`` or
                ``invalid``.
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
        lease = self._pending.get(place)
        result = Result(seconds or 0.0, failure, repeats, lease.id if lease else b"")
        self._add([place], [result])

    def _add(self, numbers: Sequence[int], results: Sequence[Result]) -> None:
        # Added first: the search knows it even if no report reaches the server.
        error = self._experience.add(numbers, results)
        for each in numbers:
            self._pending.pop(each, None)
        # A server without a store is no error: what was measured is sent with every call.
        if error is not None and not self._experience.kept.is_off:
            raise error

    def flush(self) -> None:
        """Reports what no report has brought to the server yet.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        error = self._experience.report()
        if error is not None and not self._experience.kept.is_off:
            raise error

    def fastest(self) -> dict[int, float]:
        """Returns the mean seconds of what ran, by number in the space, the fastest first: what the
        server keeps of all searches of the space on the target.

        Raises:
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        times = self._experience.kept_times(self.space.numbers)
        return {number: seconds for number, seconds in times.items() if seconds is not None}

    def rank(self, top_k: int = 10, *, timeout: float | None = None) -> Ranking | None:
        """Ranks the whole space by what is known; ``best`` has numbers in the space.

        Returns None if the server is away, and there is a fallback.

        Raises:
            ArgumentError: if the space is described: ``predicted_best`` has what comes first.
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        return self._experience.rank(self.space.configurations(), top_k, timeout=timeout)

    def predicted_best(
        self,
        former: Configuration | int | None = None,
        *,
        timeout: float | None = None,
    ) -> dict[str, Value] | None:
        """Returns the configuration that is predicted to be the fastest, measured or not.

        Returns None if nothing is known. Measure it first to begin where others ended, since
        ``suggest`` leaves out what was measured.

        Args:
            former: The pick of an earlier call, which stays unless another configuration is
                predicted to be faster by 2 %, so that noise of new measurements changes no picks.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            ArgumentError: if the space does not have the former pick.
            RefusedError: if the call ends with an error status, and there is no fallback.
        """
        kept = None if former is None else self.space.number(former)
        described = self.space.description
        numbers: Sequence[int] = range(self.space.size)
        if described is not None:
            numbers = self._promising(described, kept, timeout)
            if not numbers:
                return None
        asked = self.space.configurations(None if described is None else numbers)
        top = 1 if kept is None else 0
        ranking = self._experience.rank(asked, top, timeout=timeout)
        if ranking is None or ranking.adaptation is None or not ranking.adaptation.rests_on:
            return None
        if kept is not None and ranking.keeps(numbers.index(kept)):
            return self.space[kept]
        return self.space[numbers[int(ranking.best[0])]]

    def _promising(
        self, described: ConfigSpace, kept: int | None, timeout: float | None
    ) -> list[int]:
        """Returns configurations of a described space among which the fastest may be: a former
        pick, what was measured, and what would be suggested."""
        measured = [number for number, _ in self._experience.measured]
        if not self._experience.kept.is_off:
            try:
                measured += [*self.fastest()][: defaults.PENDING]
            except RefusedError as error:
                if not is_no_store(error):
                    raise
        found = self._experience.suggestions(
            DescribedConfigs(described), defaults.SUGGESTED, without_leases=True, timeout=timeout
        )
        suggested = [] if found is None else self._numbers(found)
        former = [] if kept is None else [kept]
        every = dict.fromkeys([*former, *measured, *suggested])
        return [number for number in every if self._allows(number)]

    def export(self, choices: int = 16, *, timeout: float | None = None) -> Policy:
        """Returns what answers without a server: some configurations, and which of them an instance
        gets by its features, of all instances that are measured on the target.

        What was not measured of an instance is predicted. If the server has tokens, the client's
        needs the scope ``admin``.

        Args:
            choices: How many configurations to choose.
            timeout: Deadline of each call in seconds; None for the client's.

        Raises:
            ArgumentError: if fewer than 4 instances with features are measured.
            RefusedError: if a call ends with an error status.
        """
        experience = self._experience
        return family_policy(
            experience.client, self.space, experience.kept.target, choices, timeout
        )

    def run(
        self,
        measure: Callable[[dict[str, Value]], float | str],
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
                    suggested = self.suggest()
                    if not suggested:
                        break
                    if made == 1:
                        show(0, None, self.rests_on)
                    for configuration in suggested:
                        try:
                            outcome = measure(configuration)
                        except BaseException:
                            # It may be suggested again, since nothing is known of it.
                            self._pending.pop(self.space.number(configuration), None)
                            raise
                        if isinstance(outcome, str):
                            self.report(configuration, failure=outcome)
                        else:
                            self.report(configuration, outcome)
                    show(made, None if self.best is None else self.best[1], "")
            except KeyboardInterrupt:
                pass  # what was measured is reported, and the caller goes on with the best of it
        return self.best

    def __repr__(self) -> str:
        best = self.best
        rows = [] if best is None else [*best[0].items(), ("seconds", best[1])]
        title = f"Search of {self.space.name!r} on {self._experience.kept.target!r}, the best:"
        found = table(title, ("parameter", "value"), rows, len(rows))
        return f"{found}\nrests on {self.rests_on}" if self.rests_on else found


@contextmanager
def _progress(
    earlier: int, measurements: int
) -> Iterator[Callable[[int, float | None, str], None]]:
    """Writes over and over one line to standard error, if that is a terminal: how many measurements
    are made, with earlier ones, and the shortest time. What they rest on has a line of its own."""
    if not sys.stderr.isatty():
        yield lambda made, seconds, rests_on: None
        return

    def show(made: int, seconds: float | None, rests_on: str) -> None:
        if rests_on:
            sys.stderr.write(f"rests on {rests_on}\n")
        fastest = "nothing ran yet" if seconds is None else f"fastest {seconds:.6g} s"
        counted = f"{earlier + made} of {earlier + measurements}"
        sys.stderr.write(f"\r{counted} measured, {fastest}\x1b[K")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write("\n")
