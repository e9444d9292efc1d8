# Generated from client.py of ``aio``: change that one.
"""The client."""

from collections.abc import Sequence

from hlorank.answers.leases import Lease
from hlorank.answers.models import ModelReference
from hlorank.calls.fallback import Fallback
from hlorank.calls.sync.calls import Calls
from hlorank.calls.sync.search import SpaceSearch
from hlorank.spaces.space import Space


class Client(Calls):
    """A connection to a server such as ``127.0.0.1:7070``.

    The first call connects. Threads may share a ``Client``. An ``AsyncClient`` may be made before
    an event loop runs; every loop that uses it has a connection of its own, and ``close`` closes
    that of the running loop. Neither can be used in a process that was forked from its own.

    Args:
        address: Host and port; ``https://`` in front of them requires TLS, and then the default
            port is 443. An IPv6 address is in brackets. ``unix:PATH`` is a socket.
        timeout: Default deadline of a call in seconds, retries included; None for no deadline.
        connect_timeout: Maximum seconds of one attempt to connect.
        retries: Maximum number of retries of a call if the server is unavailable or asks for one;
            None retries while the deadline leaves time, and without a deadline for 30 seconds
            after the first failure.
        message_bytes: Maximum length of a message in either direction.
        credentials: Enables TLS. ``grpc.ssl_channel_credentials(authority, key, certificate)``
            trusts your own certificate authority (PEM), and authenticates with a certificate.
        token: Sent with every call, without white space around it. Without TLS, the network between
            client and server can read it.
        target: What configurations are for, as ``HARDWARE, COMPILER VERSION, FLAG, ...``, by which
            the server selects a model; that of the measurements of a call if it is empty.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def search(
        self,
        space: Space,
        target: str,
        *,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        model: ModelReference | str | None = None,
        seed: int = 0,
        lease: Lease | None = None,
        fallback: Fallback | None = None,
    ) -> SpaceSearch:
        """Starts a search for a fast configuration of a space, for which no model is needed.

        Args:
            space: What to choose from.
            target: What run times are measured on: hardware, compiler and flags. Never mix targets.
            other_targets: At most 16 targets whose stored measurements of the space say what to
                expect on this one.
            all_other_targets: Whether to use all other targets that have measurements of it.
            model: As in ``rank``; None for one that serves the space's feature set, if there is
                one.
            seed: Seed of random suggestions.
            lease: The worker that this search is, if others search the same space at the same time:
                none of them is suggested what another one measures.
            fallback: What goes on if the server is away: the search then suggests nothing, until
                it asks again after a pause. None if errors are for the caller.

        Raises:
            ArgumentError: if an argument cannot be used; the message names it.
        """
        return SpaceSearch(
            self,
            space,
            target,
            other_targets=other_targets,
            all_other_targets=all_other_targets,
            model=model,
            seed=seed,
            lease=lease,
            fallback=fallback,
        )
