"""Leases: the right to measure a configuration, which one worker of a search has at a time."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from hlorank.checks.arguments import content, text, whole_number, wrong
from hlorank.checks.arguments import seconds as checked_seconds
from hlorank.checks.errors import AnswerError
from hlorank.wire import defaults, messages
from hlorank.wire.durations import set_seconds
from hlorank.wire.words import known_word

SearchState = Literal["", "running", "all_leased", "exhausted", "budget_spent", "decided"]
"""What a search is doing: there are suggestions; others measure all that is left; every
configuration is measured or failed; the budget is spent; the search has a decision. Empty without
a lease."""
LeaseState = Literal["", "held", "adopted", "ended", "taken"]
"""What became of a lease: prolonged; unknown to the server, and taken over; reported or given back;
expired, and another worker has the configuration. A report counts all the same."""


@dataclass(frozen=True)
class Lease:
    """Asks a server to lease what it suggests to one worker of a search.

    Until a lease ends, by a report, by its expiry or given back, no other worker of the search is
    suggested its configuration. Workers that search the same graph on the same target, with the
    same ``search``, are workers of one search.

    Raises:
        ArgumentError: if a value cannot be used; the message names it.
    """

    worker: str
    """The worker's own name, 1 to 64 bytes, such as ``HOST/PROCESS``. What it has leased already is
    suggested again first."""
    ttl: float = defaults.LEASE
    """Seconds until a lease expires that is not renewed, from 5 s to 1 h."""
    search: str = ""
    """What tells searches of one graph on one target apart, at most 64 bytes."""
    budget: int = 0
    """After how many configurations nothing more is leased; 0 for no end."""
    budget_time: float | None = None
    """After how many seconds nothing more is leased; None for no end."""
    machine: str = ""
    """What measures, at most 256 bytes: machines of one target may differ in speed."""

    def __post_init__(self) -> None:
        """Checks what the caller passed."""
        if not text(self.worker, "worker"):
            raise wrong("worker", self.worker, "the name of a worker")
        for name in ("search", "machine"):
            text(getattr(self, name), name)
        whole_number(self.budget, "budget")
        checked_seconds(self.budget_time, "budget_time")
        if not checked_seconds(self.ttl, "ttl"):
            raise wrong("ttl", self.ttl, "seconds from 5 to 3600")

    @property
    def seconds(self) -> float:
        """The seconds of ``ttl``."""
        return checked_seconds(self.ttl, "ttl") or defaults.LEASE

    def message(self) -> messages.LeaseRequest:
        """Returns the message."""
        found = messages.LeaseRequest(worker=self.worker, search=self.search, machine=self.machine)
        set_seconds(found.ttl, self.seconds)
        time = checked_seconds(self.budget_time, "budget_time")
        if self.budget or time is not None:
            found.budget.measurements = self.budget
        if time is not None:
            set_seconds(found.budget.time, time)
        return found


@dataclass(frozen=True)
class GrantedLease:
    """The right to measure one configuration of a search."""

    id: bytes
    """What a report of the configuration names."""
    expires_in: float
    """Seconds until it expires, from when the server answered."""
    attempt: int
    """Number of workers that were given the configuration, this one included."""
    config: bytes
    """Digest of the configuration, by which a server that was started anew takes a lease over."""


def renewal(
    lease: Lease, graph_hash: bytes, target: str, granted: Iterable[GrantedLease], give_back: bool
) -> messages.RenewLeasesRequest:
    """Returns the request that renews leases, or gives them back."""
    held = list(granted)
    found = messages.RenewLeasesRequest(
        graph_hash=graph_hash,
        target=target,
        search=lease.search,
        worker=lease.worker,
        ids=[content(each.id, "granted") for each in held],
        configs=[each.config for each in held],
        give_back=give_back,
    )
    set_seconds(found.ttl, lease.seconds)
    return found


def lease_states_of(answer: messages.RenewLeasesResponse, leases: int) -> tuple[LeaseState, ...]:
    """Converts what became of leases. Raises AnswerError if it is impossible."""
    if len(answer.states) != leases:
        raise AnswerError(f"the server sent {len(answer.states)} states of {leases} leases")
    enum = messages.LeaseState.DESCRIPTOR
    return tuple(known_word(enum, each, LeaseState) or "" for each in answer.states)
