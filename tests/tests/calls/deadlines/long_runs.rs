//! A run of a whole-graph model may take long. It ends when its call does, and work that expires while it waits for the
//! run is not started.

use hlorank_tests::prelude::*;

use crate::{
    deadlines::request::{
        RUN_TILES, WHOLE_GRAPH, assert_expired, of_tiles, put, whole_graph_server, within,
    },
    limits::request::features,
};

/// Much less time than a whole run takes.
const ALLOWED: Duration = Duration::from_millis(300);

/// A run that continues never ends soon, but one that was stopped may seem to continue on a busy machine.
const ATTEMPTS: usize = 5;

type Run = JoinHandle<Result<(), Status>>;

struct Fixture {
    server: TestServer,
    hash: Digest,
}

impl Fixture {
    async fn start() -> Self {
        let server = whole_graph_server().await;
        let hash = put(&server, &kernel_of(40)).await;
        Self { server, hash }
    }

    fn request(&self) -> RankConfigsRequest {
        of_tiles(self.hash, RUN_TILES).with_model(WHOLE_GRAPH)
    }

    /// Starts a run, and waits until the worker runs it or its time is up.
    async fn begin(&self, allowed: Duration) -> Run {
        let (mut service, request) = (self.server.patient(), within(allowed, self.request()));
        let run = tokio::spawn(async move { service.rank_configs(request).await.map(drop) });
        let is_at_it = |scrape: &Scrape| {
            scrape.value("hlorank_queued_nodes", &[]) > 0.0
                && scrape.value("hlorank_compute_queue_tasks", &[]) == 0.0
        };
        self.server
            .until_metrics(|scrape| run.is_finished() || is_at_it(scrape))
            .await;
        run
    }

    /// Measures how long a call takes now.
    async fn time_of(&self, request: RankConfigsRequest) -> Duration {
        let started = Instant::now();
        self.server.patient().rank_configs(request).await.unwrap();
        started.elapsed()
    }

    async fn time_of_small_call(&self) -> Duration {
        self.time_of(of_tiles(self.hash, 4)).await
    }

    /// Starts a run, ends its call, and asserts that the worker is soon free for other calls.
    async fn assert_stops(&self, whole: Duration, allowed: Duration, end: impl AsyncFn(Run)) {
        let mut quickest = Duration::MAX;
        for _ in 0..ATTEMPTS {
            end(self.begin(allowed).await).await;
            quickest = quickest.min(self.time_of_small_call().await);
            if quickest < whole / 2 {
                return;
            }
        }
        panic!("{quickest:?} at best after the end of a run of {whole:?}");
    }
}

#[tokio::test]
async fn a_run_stops_when_its_client_has_gone_or_its_time_is_up() {
    let fixture = Fixture::start().await;
    let whole = fixture.time_of(fixture.request()).await;
    let leave = async |run: Run| run.abort();
    fixture
        .assert_stops(whole, Duration::from_mins(1), leave)
        .await;
    let expire = async |run: Run| assert_expired(&run.await.unwrap().unwrap_err());
    fixture.assert_stops(whole, ALLOWED, expire).await;
}

#[tokio::test]
async fn what_expires_while_it_waits_is_not_begun() {
    let fixture = Fixture::start().await;
    // So many nodes, and tiles, that compute threads read them.
    let kernel = kernel_graph(graph_of(Source::Features(features(9, &[]))));
    let kernel = PutGraphRequest {
        graph: Some(kernel),
    };
    let tiles = of_tiles(fixture.hash, 600);
    let (mut ranking, mut putting) = (fixture.server.patient(), fixture.server.patient());
    let before = fixture.server.scrape().await;
    let run = fixture.begin(Duration::from_mins(1)).await;
    let (ranked, put) = tokio::join!(
        ranking.rank_configs(within(ALLOWED, tiles)),
        putting.put_graph(within(ALLOWED, kernel)),
    );
    assert_expired(&ranked.unwrap_err());
    assert_expired(&put.unwrap_err());
    assert!(!run.is_finished(), "the run kept them waiting");
    run.await.unwrap().unwrap();
    // This call is queued behind the work that waited.
    fixture.time_of_small_call().await;
    let after = fixture.server.scrape().await;
    let since = |name, labels| after.sum(name, labels) - before.sum(name, labels);
    let misses = [("cache", "embeddings"), ("result", "miss")];
    assert_eq!(since("hlorank_cache_requests_total", &misses), 4.0);
    let graphs = [("cache", "graphs_by_source")];
    assert_eq!(since("hlorank_cache_entries", &graphs), 0.0);
}
