//! One run of a whole-graph model may take long: it ends when its call does, and what waited for it meanwhile is not
//! begun if its time is up.

use std::time::{Duration, Instant};

use hlorank_graph::Digest;
use hlorank_tests::{Artifacts, RankRequestBuilder as _, Scrape, TestServer, kernel_of};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::request::{assert_refused, count, of_tiles, put, put_kernel, within};

/// Scores whole graphs, here with as many configurations at a time as there are.
const WHOLE_GRAPH: &str = "tile-whole-graph";

/// Tiles of one run that takes some seconds.
const TILES: i64 = 45_000;

/// Much less than a whole run.
const ALLOWED: Duration = Duration::from_millis(300);

/// A run that goes on is never over soon; one that was stopped may seem so on a busy machine.
const ATTEMPTS: usize = 5;

type Run = JoinHandle<Result<(), Status>>;

struct Fixture {
    server: TestServer,
    hash: Digest,
    /// Of a whole run.
    run: Duration,
}

impl Fixture {
    /// With one worker, so that one run keeps all others waiting.
    async fn start() -> Self {
        let models = Artifacts::copy();
        for version in models.versions(WHOLE_GRAPH) {
            models.edit_manifest(&version, |manifest| manifest["chunk_configs"] = TILES.into());
        }
        let server = TestServer::start_with(&[&models.flag(), "--workers=1"]).await;
        let hash = put(&server, &kernel_of(40)).await;
        let started = Instant::now();
        server.patient().rank_configs(of_tiles(hash, TILES).with_model(WHOLE_GRAPH)).await.unwrap();
        Self { server, hash, run: started.elapsed() }
    }

    /// Begins a run, and waits until the worker is at it or its time is up.
    async fn begin(&self, allowed: Duration) -> Run {
        let mut service = self.server.patient();
        let request = within(allowed, of_tiles(self.hash, TILES).with_model(WHOLE_GRAPH));
        let run = tokio::spawn(async move { service.rank_configs(request).await.map(drop) });
        let is_at_it = |scrape: &Scrape| {
            scrape.value("hlorank_queued_nodes", &[]) > 0.0
                && scrape.value("hlorank_compute_queue_tasks", &[]) == 0.0
        };
        while !run.is_finished() && !is_at_it(&self.server.scrape().await) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        run
    }

    /// How long the server takes for a small call now.
    async fn small_call(&self) -> Duration {
        let started = Instant::now();
        self.server.patient().rank_configs(of_tiles(self.hash, 4)).await.unwrap();
        started.elapsed()
    }

    /// Begins a run, ends its call, and asserts that the worker is soon free for others.
    async fn assert_stops(&self, allowed: Duration, end: impl AsyncFn(Run)) {
        let mut quickest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            end(self.begin(allowed).await).await;
            quickest = quickest.min(self.small_call().await);
            if quickest < self.run / 2 {
                return;
            }
        }
        panic!("{quickest:?} at best after the end of a run of {:?}", self.run);
    }
}

#[tokio::test]
async fn a_run_stops_when_its_client_has_gone() {
    let fixture = Fixture::start().await;
    fixture.assert_stops(Duration::from_mins(1), async |run| run.abort()).await;
}

#[tokio::test]
async fn a_run_stops_when_its_time_is_up() {
    let fixture = Fixture::start().await;
    let expire = async |run: Run| {
        assert_refused(&run.await.unwrap().unwrap_err(), "DEADLINE_EXCEEDED");
    };
    fixture.assert_stops(ALLOWED, expire).await;
}

#[tokio::test]
async fn what_expires_while_it_waits_is_not_begun() {
    let fixture = Fixture::start().await;
    let (mut ranking, mut putting) = (fixture.server.patient(), fixture.server.patient());
    let before = fixture.server.scrape().await;
    let run = fixture.begin(Duration::from_mins(1)).await;
    let (ranked, put) = tokio::join!(
        ranking.rank_configs(within(ALLOWED, of_tiles(fixture.hash, 50))),
        putting.put_graph(within(ALLOWED, put_kernel(9))),
    );
    assert_refused(&ranked.unwrap_err(), "DEADLINE_EXCEEDED");
    assert_refused(&put.unwrap_err(), "DEADLINE_EXCEEDED");
    assert!(!run.is_finished(), "the run kept them waiting");
    run.await.unwrap().unwrap();
    // It comes after what waited.
    fixture.small_call().await;
    let after = fixture.server.scrape().await;
    let since = |name, label| count(&after, name, label) - count(&before, name, label);
    assert_eq!(since("hlorank_embedding_cache_requests_total", ("result", "miss")), 4.0);
    assert_eq!(since("hlorank_graph_cache_entries", ("index", "source")), 0.0);
}
