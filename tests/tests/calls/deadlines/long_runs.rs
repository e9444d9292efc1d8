//! A run of a whole-graph model may take long. It ends when its call does, and work that expires while it waits for the
//! run is not started.

use hlorank_tests::prelude::*;

use crate::deadlines::request::{assert_refused, of_tiles, put, put_kernel, within};

/// Whole-graph model, here with all configurations in one chunk.
const WHOLE_GRAPH: &str = "tile-whole-graph";

/// Number of tiles of one run, which takes several seconds.
const TILES: i64 = 45_000;

/// Much less time than a whole run takes.
const ALLOWED: Duration = Duration::from_millis(300);

/// A run that continues never ends soon, but one that was stopped may seem to continue on a busy machine.
const ATTEMPTS: usize = 5;

type Run = JoinHandle<Result<(), Status>>;

struct Fixture {
    server: TestServer,
    hash: Digest,
    /// Duration of a whole run.
    run: Duration,
}

impl Fixture {
    /// Starts a server with one worker, so that one run delays all others.
    async fn start() -> Self {
        let models = Artifacts::copy();
        for version in models.versions(WHOLE_GRAPH) {
            models.edit_manifest(&version, |manifest| {
                manifest["chunk_configs"] = TILES.into();
            });
        }
        // A run may take a quarter of these bytes, so that one run has all configurations.
        let flags = [&models.flag(), "--workers=1", "--max-call-bytes=16GiB"];
        let server = TestServer::start_with(&flags).await;
        let hash = put(&server, &kernel_of(40)).await;
        let started = Instant::now();
        server
            .patient()
            .rank_configs(of_tiles(hash, TILES).with_model(WHOLE_GRAPH))
            .await
            .unwrap();
        Self {
            server,
            hash,
            run: started.elapsed(),
        }
    }

    /// Starts a run, and waits until the worker runs it or its time is up.
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

    /// Measures how long a small call takes now.
    async fn small_call(&self) -> Duration {
        let started = Instant::now();
        self.server
            .patient()
            .rank_configs(of_tiles(self.hash, 4))
            .await
            .unwrap();
        started.elapsed()
    }

    /// Starts a run, ends its call, and asserts that the worker is soon free for other calls.
    async fn assert_stops(&self, allowed: Duration, end: impl AsyncFn(Run)) {
        let mut quickest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            end(self.begin(allowed).await).await;
            quickest = quickest.min(self.small_call().await);
            if quickest < self.run / 2 {
                return;
            }
        }
        panic!(
            "{quickest:?} at best after the end of a run of {:?}",
            self.run
        );
    }
}

#[tokio::test]
async fn a_run_stops_when_its_client_has_gone() {
    let fixture = Fixture::start().await;
    fixture
        .assert_stops(Duration::from_mins(1), async |run| run.abort())
        .await;
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
    // So many tiles that a compute thread reads them.
    let (ranked, put) = tokio::join!(
        ranking.rank_configs(within(ALLOWED, of_tiles(fixture.hash, 600))),
        putting.put_graph(within(ALLOWED, put_kernel(9))),
    );
    assert_refused(&ranked.unwrap_err(), "DEADLINE_EXCEEDED");
    assert_refused(&put.unwrap_err(), "DEADLINE_EXCEEDED");
    assert!(!run.is_finished(), "the run kept them waiting");
    run.await.unwrap().unwrap();
    // This call is queued behind the work that waited.
    fixture.small_call().await;
    let after = fixture.server.scrape().await;
    let since = |name, labels| after.sum(name, labels) - before.sum(name, labels);
    assert_eq!(
        since(
            "hlorank_cache_requests_total",
            &[("cache", "embeddings"), ("result", "miss")]
        ),
        4.0
    );
    assert_eq!(
        since("hlorank_cache_entries", &[("cache", "graphs_by_source")]),
        0.0
    );
}
