"""A worker of a search: it leases configurations, measures them and reports what came of them."""

import signal
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from time import sleep
from types import FrameType
from typing import Literal, TypeVar

from hlorank.answers.decisions import Evidence
from hlorank.answers.leases import Lease
from hlorank.calls.fallback import is_worth_waiting
from hlorank.calls.sync.client import Client
from hlorank.checks.arguments import text, wrong
from hlorank.checks.errors import HlorankError
from hlorank.spaces.space import Configuration, Space, Value
from hlorank.wire import defaults
from hlorank.wire.transport import Connected
from hlorank.worker.agreement import Agreement, OnAway, Verdict, worker_name
from hlorank.worker.choice import FINALISTS, RUNS, Choice, choose
from hlorank.worker.renewal import Renewal

Answer = TypeVar("Answer")
Ended = Literal["decided", "exhausted", "budget_spent"]
Measure = Callable[[dict[str, Value]], float | str]
"""Returns the seconds of a configuration, or how it failed"""

_RENEWALS = 3
"""How often a lease is renewed before it would expire."""
_LONGEST_INTERVAL = 60.0
"""Seconds within which a server that was started anew expects living workers to renew."""
_MACHINE_BYTES = 64
"""Maximum length of the machine of a decision's evidence."""
_PAUSE = 1.0
"""Seconds between calls while the server is away, or busy with others."""


class Worker(Connected):
    """Measures configurations of a space as one of many workers, of which no two measure the same.

    >>> worker = Worker("127.0.0.1:7070", space, "H100, CUDA 13", measure, budget=128)
    >>> worker.run()
    'budget_spent'
    >>> worker.conclude()
    {'block_m': 64, 'vectorize': True}

    A server that is away is waited for, and a measured value is reported once it is back. SIGTERM
    and Ctrl-C give back what is being measured, so that another worker has it at once; an error of
    ``measure`` does, too. A worker that is killed loses its leases by their expiry.

    Args:
        server: The address of a server that keeps measurements, or a client.
        space: What to choose from.
        target: What run times are measured on: hardware, compiler and flags. Never mix targets.
        measure: Returns the seconds of a configuration, or how it failed: ``compile``, ``crash``,
            ``wrong_result`` or ``timeout``.
        search: What tells searches of the space on the target apart.
        budget: After how many configurations, of all workers, the search ends; 0 for all.
        budget_time: After how many seconds the search ends; None for no end.
        machine: The machine that measures; by default the host.
        worker: The name of the worker; by default its host and process.
        ttl: Seconds until a lease expires whose worker was killed.
        other_targets: At most 16 targets whose stored measurements say what to expect on this one.
        seed: Seed of random suggestions.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        server: Client | str,
        space: Space,
        target: str,
        measure: Measure,
        *,
        search: str = "",
        budget: int = 0,
        budget_time: float | None = None,
        machine: str | None = None,
        worker: str | None = None,
        ttl: float = defaults.LEASE,
        other_targets: Sequence[str] = (),
        seed: int = 0,
    ):
        if not callable(measure):
            raise wrong("measure", measure, "a function of a configuration")
        name = worker_name() if worker is None else text(worker, "worker")
        host = name.partition("/")[0] if machine is None else machine
        self._lease = Lease(name, ttl, search, budget, budget_time, host)
        self._client = server if isinstance(server, Client) else Client(server)
        self._space = space
        self._target = target
        self._measure = measure
        self._search = self._client.search(
            space, target, other_targets=other_targets, seed=seed, lease=self._lease
        )
        self.measured = 0
        """Number of configurations that this worker measured."""

    def run(self) -> Ended:
        """Measures until the search is decided, exhausted or its budget is spent; says which.

        Raises:
            HlorankError: if the server refuses a call, such as one without a store.
        """
        interval = min(self._lease.seconds / _RENEWALS, _LONGEST_INTERVAL)
        with _interrupted_by_sigterm(), Renewal(self._search.renew, interval):
            try:
                while True:
                    suggested = _until_answered(self._search.suggest)
                    for configuration in suggested:
                        self._measure_and_report(configuration)
                    match self._search.state:
                        case "decided" | "exhausted" | "budget_spent" as ended if not suggested:
                            return ended
                        case _ if not suggested:
                            sleep(self._search.retry_after or _PAUSE)
            except BaseException:
                # Also if the caller's function fails, which says nothing of the configuration.
                with suppress(HlorankError):
                    self._search.renew(give_back=True, timeout=defaults.ADAPTER_TIMEOUT)
                raise

    def conclude(
        self,
        default: Configuration | None = None,
        *,
        again: bool = False,
        runs: int = RUNS,
        finalists: int = FINALISTS,
        on_away: OnAway = "wait",
    ) -> dict[str, Value] | None:
        """Decides for a configuration, and returns what is decided, here or by another worker.

        One worker measures the fastest configurations and ``default`` anew, on its machine, by
        turns, so that neither a fast machine nor one lucky run elects the winner: in a simulation
        with one machine of 32 that is 1.25 times as fast, the winner was 5.7 % worse than the best
        without that. Of equally fast ones, ``default`` wins. The others wait.

        Args:
            default: What to use unless another configuration is faster.
            again: Whether to decide anew, which needs the scope ``admin``: the older decision is
                measured, too, and stays unless another configuration is faster.
            runs: How often each finalist is measured.
            finalists: Number of the fastest configurations that are measured again.
            on_away: What happens while the server is away: ``default`` returns ``default``, after
                at most 2 s; ``wait`` waits; ``fail`` raises the error.

        Returns None if nothing ran, or if the decision is none of the space.

        Raises:
            HlorankError: if the server is away, and ``on_away`` is ``fail``.
        """
        preferred = [] if default is None else [self._space.number(default)]
        default_of = self._space[preferred[0]] if preferred else None
        agreement = Agreement(
            self._client, "space", self._target, on_away=on_away, worker=self._lease.worker
        )
        key = agreement.answered(self._decision_key)
        if isinstance(key, Verdict):
            return default_of
        verdict = agreement.ask(key)
        older = verdict.decision
        if verdict.state == "claimed" or (again and older is not None):
            first = None if older is None else self._space.decoded(older.value)
            if first is not None:
                preferred.insert(0, self._space.number(first))
            similar = [self._space.decoded(each.value) for each in agreement.near(key)]
            near = [self._space.number(each) for each in similar if each is not None]
            try:
                times, measured = self._finalists([*preferred, *near], runs, finalists)
            except BaseException:
                agreement.give_back(key)
                raise
            if not times:
                agreement.give_back(key)
                return first or default_of
            choice = choose(times, preferred)
            chosen = self._space.encoded(choice.candidate)
            if older is None or older.value != chosen:
                evidence = self._evidence(choice, runs, measured)
                generation = 0 if older is None else older.generation
                older = agreement.propose(key, chosen, evidence, supersede=generation)
        if older is None:
            return default_of
        decided = self._space.decoded(older.value)
        if decided is None:
            agreement.misfit()
        return decided

    def _decision_key(self) -> bytes:
        """Returns the hash of the space, whose searches on the target have one decision."""
        graph = self._space.graph
        return graph.hash or self._client.put_graph(graph, timeout=defaults.ADAPTER_TIMEOUT).hash

    def _measure_and_report(self, configuration: dict[str, Value]) -> None:
        outcome = self._measure(configuration)
        self.measured += 1
        failure, seconds = (outcome, None) if isinstance(outcome, str) else (None, outcome)
        try:
            self._search.report(configuration, seconds, failure=failure)
        except HlorankError as error:
            if not is_worth_waiting(error):
                raise
            # It may have arrived: what is reported twice with its lease is kept once.
            _until_answered(self._search.flush)

    def _finalists(
        self, preferred: Sequence[int], runs: int, finalists: int
    ) -> tuple[dict[int, list[float]], int]:
        """Measures the fastest configurations by turns; returns their times, and how many
        configurations were measured by anyone."""
        fastest = _until_answered(self._search.fastest)
        numbers = list(dict.fromkeys([*preferred, *[*fastest][:finalists]]))
        times: dict[int, list[float]] = {number: [] for number in numbers}
        for _ in range(runs):
            for number in [*times]:
                outcome = self._measure(self._space[number])
                if isinstance(outcome, str):
                    del times[number]
                else:
                    times[number].append(outcome)
        return times, len(fastest)

    def _evidence(self, choice: Choice[int], runs: int, measured: int) -> Evidence:
        machine = self._lease.machine.encode()[:_MACHINE_BYTES].decode(errors="ignore")
        return Evidence(choice.seconds, runs, measured, min(choice.tie_band, 1.0), machine)


def _until_answered(call: Callable[[], Answer]) -> Answer:
    """Makes a call until the server is there. Says once that it is away."""
    is_said = False
    while True:
        try:
            return call()
        except HlorankError as error:
            if not is_worth_waiting(error):
                raise
            if not is_said:
                warnings.warn(f"hlorank: {error}; the worker waits", stacklevel=3)
            is_said = True
        sleep(_PAUSE)


class _Terminated(BaseException):
    """SIGTERM arrived."""


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """Ends what runs at SIGTERM by an exception, and then has the signal handled as before."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise _Terminated

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    except _Terminated:
        signal.signal(signal.SIGTERM, before)
        signal.raise_signal(signal.SIGTERM)
        raise SystemExit(128 + signal.SIGTERM) from None  # the handler before let it go on
    finally:
        signal.signal(signal.SIGTERM, before)
