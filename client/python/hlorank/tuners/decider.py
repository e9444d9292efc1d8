"""What adapters share whose tuners use what is decided for all processes."""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Any, Generic, Literal, TypeVar

from hlorank import Client, Evidence, Fallback, Space, SpaceSearch
from hlorank.checks.arguments import flag
from hlorank.spaces.space import Value
from hlorank.wire import defaults
from hlorank.worker.agreement import Agreement, Group, OnAway, Verdict

T = TypeVar("T")
State = Literal["decided", "claimed", "away", "off"]


@dataclass(frozen=True)
class Listed(Generic[T]):
    """A list from which everybody uses one."""

    key: bytes
    options: Sequence[T]
    """What there is, the default first"""
    named: Callable[[T], dict[str, Any]]
    """Returns what names an option in every process, as JSON has it"""

    def read(self, value: bytes) -> T | None:
        """Returns the option that a decision stands for."""
        found = object_of(value)
        return next((each for each in self.options if self.named(each) == found), None)


class Decider(Agreement):
    """Asks what is decided before a tuner measures, and proposes what it found.

    Args:
        client: A client of a server that keeps measurements.
        target: What decisions are for: hardware, compiler and flags.
        decide: Whether all processes use the same configuration, which the first of them tunes and
            the server keeps as the decision; what is decided is not measured again.
        on_away: What a process does without a decision while the server is away: with ``default``
            it goes on without one, after at most 2 s; with ``wait`` it waits; with ``fail`` the
            error is raised.
        group: A process group, such as ``torch.distributed``, whose leader asks and tells the
            others. All of them must tune the same in the same order.
        timeout: Maximum seconds of a call, retries included.
        fallback: What goes on if the server is away.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    namespace = ""
    """Whose decisions these are."""

    def __init__(
        self,
        client: Client,
        target: str,
        *,
        decide: bool = False,
        on_away: OnAway = "default",
        group: Group | None = None,
        timeout: float | None = defaults.ADAPTER_TIMEOUT,
        fallback: Fallback | None = None,
    ):
        super().__init__(
            client,
            self.namespace,
            target,
            on_away=on_away,
            timeout=timeout,
            fallback=fallback,
            group=group,
        )
        self._decides = flag(decide, "decide")
        if not decide:
            self._group = None

    def decided(self, key: bytes, read: Callable[[bytes], T | None]) -> tuple[State, T | None]:
        """Returns what is decided for a key, and else what to do.

        Args:
            key: What is tuned, by ``key_of``.
            read: Returns what a decision stands for; None if it does not fit what is tuned.

        Returns ``decided`` with it; ``claimed``: tune, and then call ``agree`` or ``give_back``;
        ``away``: use the default; or ``off``: tune as if nobody else did.
        """
        verdict = self.ask(key) if self._decides else Verdict("off")
        if verdict.decision is None:
            return verdict.state, None
        found = self._read(verdict.decision.value, read)
        return ("off", None) if found is None else ("decided", found)

    def known(self, key: bytes, read: Callable[[bytes], T | None]) -> T | None:
        """Returns what is decided for a key; nothing is claimed, and nobody is waited for."""
        decision = self.look(key) if self._decides else None
        return None if decision is None else self._read(decision.value, read)

    def agree(
        self,
        key: bytes,
        own: T | None,
        value: bytes | None,
        read: Callable[[bytes], T | None],
        evidence: Evidence | None = None,
    ) -> T | None:
        """Proposes what was found for a claimed key, and returns what to use instead of it.

        Both are None if nothing was found. None says that the decision is not known: use the
        default.
        """
        if not self._decides:
            return own
        decision = self.propose(key, value, evidence)
        if decision is None:
            return None
        found = self._read(decision.value, read)
        return own if found is None else found

    def agree_on_best(self, key: bytes, search: SpaceSearch) -> dict[str, Value] | None:
        """Proposes the fastest configuration of a search, and returns what to use instead of it.

        None if nothing ran, or if the decision is not known.
        """
        # Whatever went on while the server was away may have found a faster one.
        best, space = None if search.is_lost else search.best, search.space
        if best is None:
            return self.agree(key, None, None, space.decoded)
        own, seconds = best
        return self.agree(key, own, space.encoded(own), space.decoded, Evidence(seconds, 1))

    def agree_on_one(self, listed: Listed[T], own: T, seconds: float, measured: int) -> T:
        """Proposes the fastest of ``measured`` options, and returns what to use instead of it.

        Infinite ``seconds`` say that none ran.
        """
        if not isfinite(seconds):
            return self.agree(listed.key, None, None, listed.read) or own
        value = json.dumps(listed.named(own), sort_keys=True).encode()
        evidence = Evidence(seconds, 1, measured)
        return self.agree(listed.key, own, value, listed.read, evidence) or listed.options[0]

    def _read(self, value: bytes, read: Callable[[bytes], T | None]) -> T | None:
        found = read(value)
        if found is None:
            self.misfit()
        return found


class SharedCache(Decider):
    """What a tuner's own cache keeps, for processes that start later.

    Nobody waits, since such a cache is not told whether tuning goes on: processes that start
    together may tune the same, and use their own results until their next start. Every error is a
    miss.

    Args:
        client: A client of a server that keeps measurements.
        target: What decisions are for, with all that the tuner's own key lacks.
        read: Returns an entry if the tuner can read it; None if it would raise.
        options: ``timeout`` and ``fallback`` of a ``Decider``.
    """

    def __init__(
        self, client: Client, target: str, read: Callable[[bytes], bytes | None], **options: Any
    ):
        super().__init__(client, target, decide=True, **options)
        self._readable = read

    def get(self, key: str) -> bytes | None:
        """Returns what is decided for a key of the tuner."""
        with suppress(Exception):
            return self.known(key_of(key), self._readable)
        return None

    def put(self, key: str, entry: bytes) -> None:
        """Proposes what the tuner found."""
        with suppress(Exception):
            self.agree(key_of(key), entry, entry, self._readable)


def key_of(*parts: object) -> bytes:
    """Returns the key of a decision about what these parts tell apart."""
    return blake2b(repr(parts).encode(), digest_size=32).digest()


def key_of_space(space: Space, *further: object) -> bytes:
    """Returns the key of a decision for one of the configurations of a space."""
    rows = blake2b(space.configurations().values().tobytes()).digest()
    return key_of(space.name, space.instance, sorted(space.parameters.items()), rows, *further)


def object_of(value: bytes) -> dict[str, Any] | None:
    """Returns the JSON object of a decision; None if it is none."""
    with suppress(ValueError, RecursionError):
        found = json.loads(value)
        return found if isinstance(found, dict) else None
    return None
