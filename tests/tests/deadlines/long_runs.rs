//! One run of a whole-graph model may take long: it ends when its call does, and what waited for it meanwhile is not
//! begun if its time is up.

use std::time::{Duration, Instant};

use hlorank_graph::Digest;
use hlorank_tests::{Artifacts, TestServer, kernel_of};
use tokio::task::JoinHandle;
use tonic::Status;

use crate::request::{assert_refused, by_model, count, of_tiles, put, put_kernel, within};

/// Scores whole graphs, here with as many configurations at a time as there are.
const WHOLE_GRAPH: &str = "tile-whole-graph";

/// Tiles of one run that takes some seconds.
const TILES: i64 = 45_000;

/// Much more than a call takes whose server has nothing else to do.
const PATIENCE: Duration = Duration::from_millis(150);

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
        server.patient().rank_configs(by_model(WHOLE_GRAPH, of_tiles(hash, TILES))).await.unwrap();
        Self { server, hash, run: started.elapsed() }
    }

    /// Begins a run, which ends by itself when its time is up.
    async fn begin(&self, allowed: Duration) -> JoinHandle<Result<(), Status>> {
        let mut service = self.server.patient();
        let request = within(allowed, by_model(WHOLE_GRAPH, of_tiles(self.hash, TILES)));
        let run = tokio::spawn(async move { service.rank_configs(request).await.map(drop) });
        tokio::time::sleep(PATIENCE).await;
        run
    }

    /// How long the server takes for a small call now.
    async fn small_call(&self) -> Duration {
        let started = Instant::now();
        self.server.patient().rank_configs(of_tiles(self.hash, 4)).await.unwrap();
        started.elapsed()
    }
}

#[tokio::test]
async fn a_run_stops_when_its_client_has_gone() {
    let fixture = Fixture::start().await;
    let run = fixture.begin(Duration::from_mins(1)).await;
    run.abort();
    let took = fixture.small_call().await;
    assert!(took < fixture.run / 4, "{took:?} after a run of {:?} was left", fixture.run);
}

#[tokio::test]
async fn a_run_stops_when_its_time_is_up() {
    let fixture = Fixture::start().await;
    let run = fixture.begin(2 * PATIENCE).await;
    let took = fixture.small_call().await;
    assert_refused(&run.await.unwrap().unwrap_err(), "DEADLINE_EXCEEDED");
    assert!(took < fixture.run / 4, "{took:?} after a run of {:?} had expired", fixture.run);
}

#[tokio::test]
async fn what_expires_while_it_waits_is_not_begun() {
    let fixture = Fixture::start().await;
    let mut service = fixture.server.patient();
    let before = fixture.server.scrape().await;
    let run = fixture.begin(Duration::from_mins(1)).await;
    let ranked = service.rank_configs(within(PATIENCE, of_tiles(fixture.hash, 50))).await;
    let put = service.put_graph(within(PATIENCE, put_kernel(9))).await;
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
