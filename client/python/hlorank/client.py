"""The blocking client."""

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import grpc

from hlorank.adapt import Adapt
from hlorank.address import channel_credentials, host_and_port
from hlorank.arguments import message_size, seconds, text
from hlorank.blocking import BlockingTransport, channel, run_to_end
from hlorank.comparison import Comparison
from hlorank.configurations import Configurations
from hlorank.graph import Graph
from hlorank.measurements import MeasurementsPage, Reported
from hlorank.model import Model, ModelReference
from hlorank.rank_stream import RankStream
from hlorank.ranking import CachedGraph, Ranking
from hlorank.retry import retry_of
from hlorank.session import Session
from hlorank.space import Space
from hlorank.space_search import SpaceSearch
from hlorank.space_session import SpaceSession, Target
from hlorank.suggest import Source, Suggestions, Wanted
from hlorank.token_header import authorization
from hlorank.transport import channel_options


class Client:
    """A connection to a server such as ``127.0.0.1:7070``; threads may share it.

    The first call connects.

    Args:
        address: Host and port; ``https://`` in front of them requires TLS, and then the default
            port is 443. An IPv6 address is in brackets. ``unix:PATH`` is a socket.
        timeout: Default deadline of a call in seconds, retries included, or text with a unit such
            as ``500ms``; None for no deadline.
        connect_timeout: Maximum seconds of one attempt to connect.
        retries: Maximum number of retries of a call if the server is unavailable or asks for one;
            None retries while the deadline leaves time, and without a deadline for 30 seconds
            after the first failure.
        message_bytes: Maximum length of a message in either direction, or text such as ``64MiB``.
        credentials: Enables TLS. ``grpc.ssl_channel_credentials(authority, key, certificate)``
            trusts your own certificate authority (PEM), and authenticates with a certificate.
        token: Sent with every call, without white space around it. Without TLS, the network between
            client and server can read it.
        target: What configurations are for, as ``HARDWARE, COMPILER VERSION, FLAG, ...``, by which
            the server selects a model; that of the measurements of a call if it is empty.

    Raises:
        ArgumentError: if an argument cannot be used; the message names it.
    """

    def __init__(
        self,
        address: str,
        *,
        timeout: float | str | None = 30.0,
        connect_timeout: float | str = 10.0,
        retries: int | None = None,
        message_bytes: int | str = 64 << 20,
        credentials: grpc.ChannelCredentials | None = None,
        token: str | None = None,
        target: str = "",
    ):
        options = channel_options(connect_timeout, message_bytes)
        host = host_and_port(address)
        secured = channel_credentials(address, credentials)
        headers = authorization(token)
        retry = retry_of(retries)
        size = message_size(message_bytes, "message_bytes")
        default = seconds(timeout, "timeout")
        checked = text(target, "target")
        self._transport = BlockingTransport(channel(host, secured, options), headers)
        self._session = Session(self._transport, retry, size, default, checked)

    def put_graph(self, graph: Graph, *, timeout: float | None = None) -> CachedGraph:
        """Sends a graph to the server's cache; returns its hash, sizes and configurable nodes."""
        return run_to_end(self._session.put_graph(graph, timeout))

    def rank(
        self,
        graph: Graph,
        configurations: Configurations,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        with_scores: bool = False,
        allow_partial: bool = False,
        adapt: Adapt | None = None,
        explain_top: int = 0,
        assess_confidence: bool = False,
        timeout: float | None = None,
    ) -> Ranking:
        """Ranks configurations.

        The request contains the graph's hash if the client knows it, and the graph itself if not,
        or if the server no longer has it.

        Args:
            graph: The graph.
            configurations: Its candidates.
            top_k: Length of the ranking; 0 for all configurations.
            model: For example ``layout-xla-cpu``, ``layout-xla-cpu@3`` or
                ``layout-xla-cpu@canary``; None for the model of the task, or of the
                graph's feature set, that was trained for the target, or else the default.
            with_scores: Whether to return the score of every configuration.
            allow_partial: Whether to rank only the first configurations if ``timeout`` is too
                short for all; ``Ranking.scored`` is their number.
            adapt: Measured run times of the graph's configurations, from which the server learns
                for this call: scores are then predicted logarithms of seconds.
            explain_top: For how many of the first configurations of the ranking to return the
                kernels, at most 16. Only fusions have kernels.
            assess_confidence: Whether to return how far the ranking can be trusted, for which a
                second model scores up to 256 of the configurations.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        return run_to_end(
            self._session.rank(
                graph,
                configurations,
                top_k,
                model,
                with_scores,
                allow_partial,
                adapt,
                explain_top,
                assess_confidence,
                timeout,
            )
        )

    def suggest(
        self,
        graph: Graph,
        candidates: Configurations,
        *,
        adapt: Adapt | None = None,
        count: int = 1,
        pending: Sequence[int] = (),
        since_improvement: int = 0,
        seed: int = 0,
        source: Source = "candidates",
        model: ModelReference | str | None = None,
        timeout: float | None = None,
    ) -> Suggestions:
        """Proposes which candidates to measure next.

        Args:
            graph: The graph.
            candidates: What to choose from; what ``adapt`` contains is not suggested again.
            adapt: What was measured until now. Before three measurements, the model's ranking
                decides.
            count: Number of suggestions, at most 64.
            pending: Numbers of candidates that are being measured, at most 256.
            since_improvement: Number of measurements since the fastest one. After every fifth,
                the suggestion is a random one.
            seed: Seed of random suggestions.
            source: Where suggestions come from: the candidates themselves, or all combinations
                of the layouts that ``segments`` or ``nodes`` of the graph have in them, which the
                server searches. Combinations need a segment model.
            model: As in ``rank``.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        wanted = Wanted(count, pending, since_improvement, seed, source)
        return run_to_end(self._session.suggest(graph, candidates, wanted, model, adapt, timeout))

    def search(
        self,
        space: Space,
        target: str,
        *,
        other_targets: Sequence[str] = (),
        all_other_targets: bool = False,
        model: ModelReference | str | None = None,
        seed: int = 0,
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

        Raises:
            ArgumentError: if an argument cannot be used; the message names it.
        """
        measured_on = Target(target, other_targets, all_other_targets, model)
        return SpaceSearch(SpaceSession(self._session, space, measured_on, seed))

    def report_measurements(
        self, graph: Graph, measurements: Adapt, *, timeout: float | None = None
    ) -> Reported:
        """Keeps measurements on the server, for later calls with ``Adapt(use_stored=True)``.

        Returns once they are on disk. A report can be repeated: what is known by its id is kept
        once.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        return run_to_end(self._session.report_measurements(graph, measurements, timeout))

    def list_measurements(
        self,
        target: str = "",
        graph_hash: bytes = b"",
        *,
        after: bytes = b"",
        timeout: float | None = None,
    ) -> MeasurementsPage:
        """Returns a page of the measurements that the server keeps.

        Args:
            target: Their target; empty for all.
            graph_hash: Their graph on that target; empty for all.
            after: ``next`` of the page before; empty for the first page.
            timeout: Deadline in seconds; None for the client's.

        Raises:
            ArgumentError: if ``graph_hash`` is None, as ``Graph.hash`` is before any answer.
        """
        page = self._session.list_measurements(target, graph_hash, after, timeout)
        return run_to_end(page)

    def get_measured_graph(
        self, target: str, graph_hash: bytes, *, timeout: float | None = None
    ) -> Graph | None:
        """Returns a graph that the server keeps measurements of, without names.

        Returns None if the server keeps nothing of the graph on the target, or measurements alone,
        because the graph was too large. If the server has tokens, the client's needs the scope
        ``admin``.
        """
        return run_to_end(self._session.get_measured_graph(target, graph_hash, timeout))

    def delete_measurements(
        self, target: str, graph_hash: bytes, *, timeout: float | None = None
    ) -> int:
        """Deletes the measurements of one graph on a target.

        Returns how many there were. If the server has tokens, the client's needs the scope
        ``admin``.

        Raises:
            ArgumentError: if ``graph_hash`` is empty or None, as ``Graph.hash`` is until a call was
                answered.
        """
        return run_to_end(self._session.delete_measurements(target, graph_hash, timeout))

    def delete_target(self, target: str, *, timeout: float | None = None) -> int:
        """Deletes the measurements of all graphs on a target.

        Returns how many there were. If the server has tokens, the client's needs the scope
        ``admin``.
        """
        return run_to_end(self._session.delete_target(target, timeout))

    def delete_reporter(
        self, reporter: str, target: str = "", *, timeout: float | None = None
    ) -> int:
        """Deletes what a reporter measured, on one target or, by default, on all.

        Returns how many there were. ``GraphMeasurements.reporters`` has the reporters. If the
        server has tokens, the client's needs the scope ``admin``.

        Raises:
            ArgumentError: if ``reporter`` is empty.
        """
        return run_to_end(self._session.delete_reporter(reporter, target, timeout))

    def rank_stream(
        self,
        graph: Graph,
        *,
        top_k: int = 0,
        model: ModelReference | str | None = None,
        adapt: Adapt | None = None,
        timeout: float | None = None,
    ) -> RankStream:
        """Starts a stream that ranks configurations in batches.

        Use it if the configurations exceed one message, or are not all known at once. ``timeout``
        is the deadline of the whole stream in seconds; None for no deadline. ``adapt`` is as in
        ``rank``.
        """
        stream = self._session.rank_stream(graph, top_k, model, adapt, timeout)
        return RankStream(run_to_end(stream))

    def list_models(self, *, timeout: float | None = None) -> list[Model]:
        """Returns every model version, sorted by name and version."""
        return run_to_end(self._session.list_models(timeout))

    def get_model(
        self, name: str, version: int | None = None, *, timeout: float | None = None
    ) -> Model:
        """Returns one version of a model; without ``version``, the stable one."""
        return run_to_end(self._session.get_model(name, version, timeout))

    def compare_models(
        self,
        first: ModelReference | str,
        second: ModelReference | str,
        target: str = "",
        *,
        timeout: float | None = None,
    ) -> Comparison:
        """Compares how two loaded versions rank the measurements that the server keeps.

        ``target`` is that of the measurements; empty for all. A call that times out can be
        repeated, and continues. If the server has tokens, the client's needs the scope ``admin``.

        Raises:
            RefusedError: if the call ends with an error status.
        """
        return run_to_end(self._session.compare_models(first, second, target, timeout))

    def close(self) -> None:
        """Closes the connection and cancels calls in flight."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
