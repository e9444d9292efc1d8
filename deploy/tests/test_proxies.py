"""Three real servers behind Envoy and HAProxy with the shipped configurations."""

import json
import random
import re
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc
import numpy as np
import pytest
import yaml
from hlorank import Client, Graph, HlorankError, OverloadedError, Tiles
from hlorank.wire.retry import Retry
from proxies import ENVOY, HAPROXY, KINDS, Kind, Proxy, proxy_before
from replicas import MAX_REQUESTS, Replica, graph_cache_requests, running, wait_for

GRAPHS = 60
ROUNDS = 4
THREADS = 4
PAUSE = 0.1
"""Seconds between two calls of a thread."""
TILES = Tiles(output_bounds=[[8, 16], [16, 64], [128, 64], [64, 8]])
KERNEL = """HloModule kernel

ENTRY kernel {{
  a = f32[{rows},128]{{1,0}} parameter(0)
  b = f32[{rows},128]{{1,0}} parameter(1)
  sum = f32[{rows},128]{{1,0}} add(a, b)
  ROOT result = f32[{rows},128]{{1,0}} tanh(sum)
}}
"""


def kernels() -> list[Graph]:
    """Returns graphs whose hashes no server has returned yet."""
    texts = (KERNEL.format(rows=8 * number) for number in range(1, GRAPHS + 1))
    return [Graph.from_hlo_text(text, task="tile") for text in texts]


def rank_in_rounds(address: str) -> None:
    """Ranks every graph several times, in a different order each time."""
    graphs, draw = kernels(), random.Random(2026)
    with Client(address) as client:
        for _ in range(ROUNDS):
            for graph in draw.sample(graphs, GRAPHS):
                client.rank(graph, TILES)


@dataclass
class Fleet:
    """Replicas behind a proxy."""

    proxy: Proxy
    replicas: list[Replica]
    client: Client

    def owners(self, graphs: Sequence[Graph]) -> list[Replica]:
        """Returns the replica that answers calls about each graph. Nobody else may call."""
        time.sleep(0.1)  # for answered calls that are not counted yet
        return [self._owner(graph) for graph in graphs]

    def _owner(self, graph: Graph) -> Replica:
        alive = [replica for replica in self.replicas if replica.process.poll() is None]
        before = [replica.ranked() for replica in alive]
        self.client.rank(graph, TILES)

        def counted() -> list[Replica]:
            pairs = zip(alive, before, strict=True)
            return [replica for replica, count in pairs if replica.ranked() > count]

        [owner] = wait_for("a call to be counted", counted)
        return owner

    def wait_for_owner(self, owner: Replica, graph: Graph) -> None:
        """Waits until a graph is assigned to a replica."""
        wait_for("a graph to come back", lambda: self.owners([graph]) == [owner])

    def wait_for_another_owner(self, owner: Replica, graph: Graph) -> None:
        """Waits until a graph has moved from a replica to another."""
        wait_for("a graph to move", lambda: self.owners([graph]) != [owner])

    def bring_back(self, replica: Replica, graph: Graph) -> None:
        """Starts a replica again, and waits until its graph has returned to it."""
        replica.start()
        self.wait_for_owner(replica, graph)

    @contextmanager
    def load(self, graphs: Sequence[Graph]) -> Iterator[None]:
        """Calls from several threads meanwhile, over their own connections; all are answered."""
        stopped = threading.Event()

        def answered(seed: int) -> int:
            draw, count = random.Random(seed), 0
            with Client(self.proxy.address) as client:
                while not stopped.wait(PAUSE):
                    client.rank(draw.choice(graphs), TILES)
                    count += 1
            return count

        with ThreadPoolExecutor(THREADS) as threads:
            counts = threads.map(answered, range(THREADS))
            try:
                time.sleep(0.5)
                yield
            finally:
                stopped.set()
        assert sum(counts) > 50


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


@pytest.fixture(scope="module", params=KINDS)
def fleet(request: pytest.FixtureRequest, tmp_path_factory) -> Iterator[Fleet]:
    kind = KINDS[request.param]
    kind.command(kind.run, kind.configuration)
    folder = tmp_path_factory.mktemp(kind.name)
    with (
        running(3, folder) as replicas,
        proxy_before(kind, replicas, folder) as proxy,
        Client(proxy.address) as client,
    ):
        yield Fleet(proxy, replicas, client)


@pytest.fixture
def retries(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts the retries of clients by error."""
    counted: Counter[str] = Counter()
    pause = Retry.pause

    def counting(self: Retry, error, retries):
        seconds = pause(self, error, retries)
        if seconds is not None:
            counted[error.code.name] += 1
        return seconds

    monkeypatch.setattr(Retry, "pause", counting)
    return counted


def test_the_proxy_takes_what_ships(kind: Kind):
    judged = kind.judge(kind.configuration)
    assert judged.returncode == 0, judged.stderr
    assert not re.search("warning|deprecated", judged.stderr, re.IGNORECASE), judged.stderr


def test_envoy_takes_the_name_of_the_headless_service(tmp_path: Path):
    configuration = yaml.safe_load(ENVOY.configuration.read_text())
    [cluster] = configuration["static_resources"]["clusters"]
    [locality] = cluster["load_assignment"]["endpoints"]
    address = locality["lb_endpoints"][0]["endpoint"]["address"]["socket_address"]
    address["address"] = "hlorank-replicas.default.svc.cluster.local"
    del locality["lb_endpoints"][1:]
    file = tmp_path / "envoy.yaml"
    file.write_text(yaml.safe_dump(configuration))
    judged = ENVOY.judge(file)
    assert judged.returncode == 0, judged.stderr


def test_haproxy_takes_the_lines_for_kubernetes(tmp_path: Path):
    text = HAPROXY.configuration.read_text()
    text, servers = re.subn(r"^ +server .*\n", "", text, flags=re.MULTILINE)
    text, lines = re.subn(r"^( *)#(?=[a-z])", r"\1", text, flags=re.MULTILINE)
    assert (servers, lines) == (3, 4)
    file = tmp_path / "haproxy.cfg"
    file.write_text(text)
    judged = HAPROXY.judge(file)
    assert judged.returncode == 0, judged.stderr


def test_each_graph_has_its_replica_and_hits_are_those_of_one_server(fleet: Fleet, tmp_path: Path):
    with running(1, tmp_path) as [alone]:
        rank_in_rounds(f"127.0.0.1:{alone.port}")
        expected = graph_cache_requests([alone])
    earlier = graph_cache_requests(fleet.replicas)
    rank_in_rounds(fleet.proxy.address)
    requests = graph_cache_requests(fleet.replicas) - earlier
    entries = [
        int(replica.metric("hlorank_cache_entries", 'cache="graphs_by_hash"'))
        for replica in fleet.replicas
    ]
    assert requests == expected
    assert sum(entries) == GRAPHS
    assert min(entries) >= GRAPHS / 10


def test_calls_about_no_graph_are_spread_over_all(fleet: Fleet):
    for _ in range(40):
        fleet.client.list_models()
    label = 'method="ListModels"'
    counts = [int(r.metric("hlorank_requests_total", label)) for r in fleet.replicas]
    assert min(counts) > 0


@pytest.mark.parametrize(
    ("end", "least_retries"), [(Replica.kill_in_the_middle_of_calls, 1), (Replica.drain, 0)]
)
def test_the_graphs_of_a_replica_that_ends_move_and_come_back(
    fleet: Fleet, retries: Counter[str], end: Callable[[Replica], None], least_retries: int
):
    graphs, victim = kernels(), fleet.replicas[1]
    before = fleet.owners(graphs)
    with fleet.load(graphs):
        end(victim)
        time.sleep(1.5)
    without = fleet.owners(graphs)
    with fleet.load(graphs):
        victim.start()
        time.sleep(2)
    fleet.wait_for_owner(victim, graphs[before.index(victim)])
    pairs = list(zip(before, without, strict=True))
    its = sum(b is victim and a is not victim for b, a in pairs)
    others = sum(b is not victim and a is not b for b, a in pairs)
    assert its == before.count(victim)
    # Envoy's table moves about one in a thousand.
    assert others <= 1
    assert {id(owner) for owner in without} == {id(r) for r in fleet.replicas if r is not victim}
    assert fleet.owners(graphs) == before
    assert retries["UNAVAILABLE"] >= least_retries


def test_a_stream_goes_on_while_its_replica_stops(fleet: Fleet):
    graph = kernels()[0]
    [owner] = fleet.owners([graph])
    expected = fleet.client.rank(graph, TILES, with_scores=True)
    with fleet.client.rank_stream(graph) as stream:
        stream.send(TILES)
        assert stream.scores().scores.tolist() == expected.scores.tolist()
        owner.process.terminate()
        fleet.wait_for_another_owner(owner, graph)
        assert owner.process.poll() is None
        stream.send(TILES)
        assert len(stream.finish().best) == 2 * len(TILES)
    owner.wait_until_drained()
    fleet.bring_back(owner, graph)


def test_the_end_of_a_stream_reaches_a_proxy_that_reads_it_late(fleet: Fleet):
    graph, many = kernels()[0], Tiles(output_bounds=np.ones((20_000, 1), np.int64))
    [owner] = fleet.owners([graph])
    with ThreadPoolExecutor(1) as client, fleet.client.rank_stream(graph) as stream:
        stream.send(TILES)
        stream.scores()
        owner.process.terminate()
        fleet.wait_for_another_owner(owner, graph)
        owner.process.send_signal(signal.SIGSTOP)
        stream.send(many)
        finished = client.submit(stream.finish)
        time.sleep(0.5)
        # The replica has the request and answers while the proxy does not read.
        fleet.proxy.process.send_signal(signal.SIGSTOP)
        owner.process.send_signal(signal.SIGCONT)
        time.sleep(1)
        fleet.proxy.process.send_signal(signal.SIGCONT)
        assert len(finished.result().best) == len(TILES) + len(many)
    owner.wait_until_drained()
    fleet.bring_back(owner, graph)


def test_a_client_that_takes_no_scores_holds_up_itself_alone(fleet: Fleet):
    graph, many = kernels()[0], Tiles(output_bounds=np.ones((100_000, 1), np.int64))
    [owner] = fleet.owners([graph])
    taken = 0
    # A different option, because gRPC shares one connection among equal clients of a process.
    lazy = Client(fleet.proxy.address, message_bytes=65 << 20)
    with lazy, lazy.rank_stream(graph) as stream:

        def send() -> None:
            nonlocal taken
            with suppress(HlorankError):
                for _ in range(200):
                    stream.send(many)
                    taken += 1

        sending = threading.Thread(target=send)
        sending.start()
        reached = -1
        while reached < taken:
            reached = taken
            time.sleep(1)
        assert sending.is_alive()
        fleet.client.rank(graph, TILES, timeout=5)
        stream.cancel()
        sending.join()
    if fleet.proxy.kind is HAPROXY:  # only its timeouts end such a stream
        owner.kill()
        fleet.bring_back(owner, graph)
    wait_for("calls to end", lambda: owner.metric("hlorank_requests_in_progress") == 0)


def test_large_requests_and_answers_go_through(fleet: Fleet):
    bounds = np.arange(16) % 4 + 1
    many = Tiles(output_bounds=np.tile(bounds, (495_000, 1)))
    assert len(many.serialized) > 30 << 20
    ranking = fleet.client.rank(kernels()[0], many, with_scores=True)
    assert len(ranking.scores) == len(ranking.best) == len(many)


@pytest.mark.parametrize("protocol", ["--http1.1", "--http2-prior-knowledge"])
def test_curl_calls_with_json(fleet: Fleet, protocol: str):
    url = f"http://{fleet.proxy.address}/hlorank.v1.ModelService/ListModels"
    command = ["curl", "-sS", "--fail-with-body", "--max-time", "30", protocol, "--json", "{}", url]
    called = subprocess.run(command, capture_output=True, text=True, check=False)
    assert called.returncode == 0, called.stderr + called.stdout
    models = json.loads(called.stdout)["models"]
    assert [model["name"] for model in models] == [
        model.name for model in fleet.client.list_models()
    ]


def test_an_overloaded_replica_tells_when_to_come_back_and_learns_who_went(fleet: Fleet):
    graph = kernels()[0]
    [owner] = fleet.owners([graph])
    with Client(fleet.proxy.address, retries=0) as client, ExitStack() as streams:
        for _ in range(MAX_REQUESTS):
            streams.enter_context(client.rank_stream(graph))
        with pytest.raises(OverloadedError) as refused:
            client.rank(graph, TILES)
    assert refused.value.reason == "OVERLOADED"
    assert refused.value.retry_after > 0
    wait_for("calls to end", lambda: owner.metric("hlorank_requests_in_progress") == 0)


def test_admin_calls_are_not_routed(fleet: Fleet):
    with grpc.insecure_channel(fleet.proxy.address) as channel:
        reload = channel.unary_unary("/hlorank.v1.ModelAdminService/Reload")
        with pytest.raises(grpc.RpcError) as refused:
            reload(b"", timeout=10)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED
    calls = 'method="Reload"'
    assert not any(r.metric("hlorank_requests_total", calls) for r in fleet.replicas)
