"""What everybody uses for a key: asked before a tuner measures, and proposed after it did.

The first value that is proposed is the decision, and whoever proposes takes what the server keeps.
So all processes use the same value, and one of them tunes.
"""

import os
import socket
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from time import monotonic, sleep
from typing import Any, Literal, Protocol, TypeVar, get_args

from hlorank.answers.decisions import DecideAnswer, Decision, DecisionKey, Evidence
from hlorank.calls.fallback import Fallback, is_worth_waiting
from hlorank.calls.sync.client import Client
from hlorank.checks.arguments import one_of, text, wrong
from hlorank.checks.errors import ArgumentError, HlorankError
from hlorank.wire import defaults
from hlorank.wire.transport import Connected
from hlorank.worker.renewal import Renewal

Answer = TypeVar("Answer")
OnAway = Literal["default", "wait", "fail"]
"""What happens while the server is away: the tuner's default is used, after at most 2 s, and never
proposed; the process waits; or the call fails."""

_CLAIM = 30.0
"""Seconds until the claim of a process that died expires."""
_PAUSE = 0.2
_LONGEST_WAIT = 3600.0
"""Seconds to wait for the server, or for another process that tunes. The key is undecided then."""


class Group(Protocol):
    """Processes that ask as one, such as the module ``torch.distributed`` once it is initialized.

    All of them must ask for the same keys in the same order.
    """

    def get_rank(self) -> int:
        """Returns the number of this process; the leader has 0."""

    def broadcast_object_list(self, object_list: list[Any], src: int) -> object:
        """Sets the list to that of the process ``src``."""


@dataclass(frozen=True)
class Verdict:
    """What to do about a key."""

    state: Literal["decided", "claimed", "away", "off"]
    """Use ``decision``; tune, and then propose; use the tuner's default, since the server is away;
    or tune for this process alone, since the server makes no decisions"""
    decision: Decision | None = None


class Agreement(Connected):
    """The decisions of one namespace on a target; threads may share it.

    Args:
        client: The server.
        namespace: Whose keys they are, such as ``triton``.
        target: What decisions are for.
        on_away: What happens while the server is away: ``default``, ``wait`` or ``fail``.
        timeout: Deadline of a call.
        fallback: What says once that the server is away, and when to ask it again.
        worker: The name of this process; by default its host and number.
        group: Processes of which the first one asks, and tells the others. What it claims, all of
            them tune, and its proposal is what counts.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        target: str,
        *,
        on_away: OnAway = "default",
        timeout: float | None = defaults.ADAPTER_TIMEOUT,
        fallback: Fallback | None = None,
        worker: str = "",
        group: Group | None = None,
    ):
        needed = ("get_rank", "broadcast_object_list")
        if group is not None and not all(callable(getattr(group, name, None)) for name in needed):
            raise wrong("group", group, f"an object with {' and '.join(needed)}")
        self._group = group
        self._client = client
        self._names = text(namespace, "namespace"), text(target, "target")
        self._on_away = one_of(on_away, get_args(OnAway), "on_away")
        self._timeout = timeout
        self._fallback = fallback or Fallback("the default is used")
        self._worker = worker or worker_name()
        self._claims: dict[bytes, _Claim] = {}
        self._said_misfit = False
        self._lost = Verdict("away")
        """What the last call without an answer came to."""

    def ask(self, key: bytes) -> Verdict:
        """Returns the decision of a key, or claims the right to make it.

        Waits while another process does. Nothing is claimed or decided while the server is away.

        Raises:
            HlorankError: if the server is away, and ``on_away`` is ``fail``.
            ArgumentError: if the leader of the group asks for another key.
        """
        verdict = self.from_leader(key, lambda: self._ask(key))
        if verdict.state == "claimed":
            self._claims.setdefault(key, _Claim(get_ident()))
        return verdict

    def _ask(self, key: bytes) -> Verdict:
        end = monotonic() + _LONGEST_WAIT
        while monotonic() < end:
            answer = self.answered(lambda: self._claim(key), end)
            if isinstance(answer, Verdict):
                return answer
            if answer.decision is not None:
                return Verdict("decided", answer.decision)
            if answer.state == "claimed":
                renewal = Renewal(lambda: self._claim(key, renew=True), _CLAIM / 4)
                self._claims[key] = _Claim(get_ident(), renewal)
                return Verdict("claimed")
            sleep(max(answer.retry_after, 0.01))
        return Verdict("away")

    def propose(
        self,
        key: bytes,
        value: bytes | None,
        evidence: Evidence | None = None,
        *,
        supersede: int = 0,
    ) -> Decision | None:
        """Proposes what was found for a claimed key, and returns what is decided.

        Without a value, since tuning found none, another process may tune. None says that it is not
        known: never use the proposed value then, since others may have been given another one.

        Raises:
            HlorankError: if the server is away, and ``on_away`` is ``fail``.
        """
        claim = self._claims.pop(key, None)
        if claim is not None and claim.renewal is not None:
            claim.renewal.close()
        return self.from_leader(key, lambda: self._propose(key, value, evidence, supersede))

    def _propose(
        self, key: bytes, value: bytes | None, evidence: Evidence | None, supersede: int
    ) -> Decision | None:
        if value is None:
            self._return(key)
            return None
        propose = partial(self._client.propose, self._key(key), value, evidence)
        # The server may have kept a value whose answer was lost: asked again, it says which.
        decision = self.answered(lambda: propose(supersede=supersede, timeout=self._timeout))
        return None if isinstance(decision, Verdict) else decision

    def from_leader(self, key: bytes, call: Callable[[], Answer]) -> Answer:
        """Returns what a call about a key comes to on the leader of the group, which makes it."""
        if self._group is None:
            return call()
        outcome: list[Any] = [key, None, None]
        own: Exception | None = None
        if self._group.get_rank() == 0:
            try:
                outcome[1] = call()
            except Exception as error:  # else the others would wait until the group's timeout
                own = error
                # Any other one may have no copy.
                outcome[2] = error if isinstance(error, HlorankError) else HlorankError(repr(error))
        self._group.broadcast_object_list(outcome, src=0)
        if outcome[0] != key:
            raise ArgumentError("the processes of the group do not tune the same in the same order")
        if outcome[2] is not None:
            raise own or outcome[2]
        answer: Answer = outcome[1]
        return answer

    def answered(self, call: Callable[[], Answer], end: float | None = None) -> Answer | Verdict:
        """Makes a call, again and again if ``on_away`` says so, or says why there is no answer."""
        end = monotonic() + _LONGEST_WAIT if end is None else end
        while monotonic() < end:
            # One deadline is enough for all keys.
            if self._on_away == "default" and self._fallback.is_away:
                return self._lost
            try:
                return call()
            except HlorankError as error:
                if self._on_away == "fail":
                    raise
                self._fallback.lose(error)
                self._lost = Verdict("away" if is_worth_waiting(error) else "off")
                if self._lost.state == "off":
                    return self._lost
            if self._on_away == "wait":
                sleep(_PAUSE)
        return Verdict("away")

    @contextmanager
    def giving_back(self) -> Iterator[None]:
        """At the end of a block, lets another process tune what this thread claimed in it, unless
        it was proposed: tuning may raise, or end without a result.

        A process of a group that raises alone takes part in what the others propose first.
        """
        before = {*self._claims}
        try:
            yield
        finally:
            for key, claim in [*self._claims.items()]:
                if key not in before and claim.thread == get_ident():
                    self.give_back(key)

    def give_back(self, key: bytes) -> None:
        """Lets another process tune a claimed key. The others of a group may propose meanwhile."""
        if key in self._claims:
            self.propose(key, None)

    def _return(self, key: bytes) -> None:
        if self._on_away == "default" and self._fallback.is_away:
            return
        try:
            self._claim(key, give_back=True)
        except HlorankError as error:  # it expires
            self._fallback.lose(error)

    def look(self, key: bytes) -> Decision | None:
        """Returns the decision of a key, and claims nothing."""
        answer = self._looked_up(key)
        return None if isinstance(answer, Verdict) else answer.decision

    def near(self, key: bytes) -> list[Decision]:
        """Returns decisions of similar targets, which are worth measuring."""
        answer = self._looked_up(key)
        near = () if isinstance(answer, Verdict) else answer.near
        return [each.decision for each in near]

    def misfit(self) -> None:
        """Says, once, that what is decided cannot be used here."""
        if not self._said_misfit:
            self._said_misfit = True
            namespace, target = self._names
            warnings.warn(
                f"hlorank: a decision of {namespace} on {target!r} does not fit what is tuned "
                "here, which is tuned without it",
                stacklevel=4,
            )

    def _looked_up(self, key: bytes) -> DecideAnswer | Verdict:
        return self.answered(partial(self._client.decide, self._key(key), timeout=self._timeout))

    def _claim(self, key: bytes, **how: bool) -> DecideAnswer:
        return self._client.decide(
            self._key(key), worker=self._worker, ttl=_CLAIM, timeout=self._timeout, **how
        )

    def _key(self, key: bytes) -> DecisionKey:
        namespace, target = self._names
        return DecisionKey(namespace, key, target)


@dataclass(frozen=True)
class _Claim:
    thread: int
    """The thread that tunes"""
    renewal: Renewal | None = None
    """None if the leader of the group renews it"""


def worker_name() -> str:
    """Returns a name of its own for a worker: its host, its process and a number."""
    number = f"/{os.getpid()}/{os.urandom(3).hex()}"
    return socket.gethostname().encode()[: 64 - len(number)].decode("ascii", "replace") + number
