"""The blocking client."""

from types import TracebackType
from typing import Self

import grpc

from hlorank.blocking import BlockingTransport, channel, done
from hlorank.graph import Graph
from hlorank.model import Model, ModelReference
from hlorank.ranking import BatchScores, CachedGraph, Ranking
from hlorank.retry import Retry
from hlorank.session import Configurations, Session, StreamSession
from hlorank.transport import authorization, channel_credentials, channel_options, target


class Client:
    """A connection to a server such as ``127.0.0.1:7070``; threads may share it.

    ``timeout`` is the deadline of a call in seconds, retries included, where the call sets none,
    which is None, not 0; None for none. ``connect_timeout`` is how long an attempt to connect may
    take, ``retries`` how often a call is tried again where the server is unavailable or asks for
    it, and ``message_bytes`` the longest message in either direction. It connects with the first
    call.

    TLS is spoken where the address begins with ``https://`` or there are ``credentials``:
    ``grpc.ssl_channel_credentials(authority)`` trusts an authority of your own, given as PEM, and
    takes a key and a certificate to show. ``token`` goes with every call to a server that asks for
    one; without TLS everybody on the way can read it.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float | None = 30.0,
        connect_timeout: float = 10.0,
        retries: int = 4,
        message_bytes: int = 64 << 20,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
    ):
        options = channel_options(connect_timeout, message_bytes)
        self._channel = channel(target(address), channel_credentials(address, credentials), options)
        transport = BlockingTransport(self._channel, authorization(token))
        self._session = Session(transport, Retry(retries), message_bytes, timeout)

    def put_graph(self, graph: Graph, *, timeout: float | None = None) -> CachedGraph:
        """Sends a graph to be cached, and learns which nodes a configuration sets."""
        return done(self._session.put_graph(graph, timeout))

    def rank(
        self,
        graph: Graph,
        configurations: Configurations,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        with_scores: bool = False,
        allow_partial: bool = False,
        timeout: float | None = None,
    ) -> Ranking:
        """Ranks configurations; ``top_k`` of 0 asks for the whole ranking.

        The graph goes by hash where a server told that, and whole where the server asks for it.
        ``model`` is such as ``layout-xla-cpu``, ``layout-xla-cpu@3`` or ``layout-xla-cpu@canary``;
        without it the default of the task ranks. With ``allow_partial`` the first configurations
        are ranked where ``timeout`` leaves no time for all; ``Ranking.scored`` tells how many.

        Raises:
            RefusedError: what the server, or the way to it, answered.
        """
        return done(
            self._session.rank(
                graph, configurations, top_k, model, with_scores, allow_partial, timeout
            )
        )

    def rank_stream(
        self,
        graph: Graph,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        timeout: float | None = None,
    ) -> "RankStream":
        """Starts to rank configurations that come in batches: more than a message holds, or than
        are known at once. ``timeout`` is for the whole stream; None for none.
        """
        return RankStream(done(self._session.rank_stream(graph, top_k, model, timeout)))

    def list_models(self, *, timeout: float | None = None) -> list[Model]:
        """Every model version, by name, then version."""
        return done(self._session.list_models(timeout))

    def get_model(
        self, name: str, version: int | None = None, *, timeout: float | None = None
    ) -> Model:
        """One version of a model, or the stable one."""
        return done(self._session.get_model(name, version, timeout))

    def close(self) -> None:
        """Closes the connection; calls in progress are cancelled."""
        self._channel.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class RankStream:
    """Batches of configurations on their way to a server, and their scores on the way back.

    The server reads a batch once the scores of the one before have been taken, but for what is on
    its way. So take scores while you send: where none are taken, ``send`` waits in the end.
    One thread or task uses it at a time. Leaving its ``with`` before ``finish`` cancels the call.
    """

    def __init__(self, stream: StreamSession):
        self._stream = stream

    @property
    def model(self) -> ModelReference:
        """Who scores."""
        return self._stream.model

    def send(self, configurations: Configurations) -> None:
        """Sends a batch; waits while the one before has not left."""
        done(self._stream.send(configurations))

    def scores(self) -> BatchScores | None:
        """Takes the scores of the earliest batch that has not had them taken, once they are there.

        None where every batch that was sent has.
        """
        return done(self._stream.scores())

    def finish(self) -> Ranking:
        """Closes the stream and takes the ranking over everything that was sent.

        Scores that were not taken are lost; ``timings`` and ``reuse`` are of the whole stream.
        """
        return done(self._stream.finish())

    def cancel(self) -> None:
        """Ends the call."""
        self._stream.exchange.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cancel()
