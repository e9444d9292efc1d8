//! Little is evaluated for a call after it has ended.

use hlorank_tests::prelude::*;

use crate::under_load::requests::{alone, kernels_of, of_tiles, rows, rows_evaluated};

/// Largest number of nodes whose rows are evaluated one by one: a block takes longer than reading the counter of rows.
const NODES: usize = 500;

/// Rows in a block of such kernels, the least that is evaluated at a time. The other kernels have as many nodes, or
/// half as many: 1,024.
const CHUNK_ROWS: f64 = 4.0;

/// Many more tiles than are evaluated meanwhile.
const TILES: i64 = 4_000;

/// Time for several chunks.
const ALLOWED: Duration = Duration::from_millis(300);

/// Number of calls of each kind.
const CALLS: usize = 5;

/// A server with one worker, so that chunks are evaluated one after the other. The server does not know yet how long
/// work takes, so it starts work that it cannot complete in time.
struct Fixture {
    server: TestServer,
    client: Client,
    tiles: Configurations,
}

impl Fixture {
    async fn start() -> Self {
        let server = TestServer::start_with(&["--workers=1"]).await;
        let endless = Connection {
            timeout: None,
            retries: 0,
            ..Connection::default()
        };
        Self {
            client: server.client_with(endless).await,
            server,
            tiles: grid_configurations(TILES),
        }
    }

    /// Returns the number of chunks that were evaluated after the server saw that the client had cancelled its call.
    async fn after_cancel(&self, graph: &GraphHandle) -> f64 {
        let request = RankRequest::new(graph, &self.tiles).top(1);
        let call = self.client.rank(&request);
        let cancelled = async {
            let before = rows_evaluated(&self.server).await;
            let is_begun = |scrape: &Scrape| rows(scrape) > before + 2.0 * CHUNK_ROWS;
            self.server.until_metrics(is_begun).await;
        };
        tokio::select! {
            ended = call => panic!("it was over before it could be cancelled: {:?}", ended.map(drop)),
            () = cancelled => {}
        }
        let is_seen = |scrape: &Scrape| scrape.value("hlorank_requests_in_progress", &[]) == 0.0;
        let seen = self.server.until_metrics(is_seen).await;
        self.chunks_since(rows(&seen)).await
    }

    /// Returns the number of chunks that were evaluated after the call expired.
    async fn after_deadline(&self, hash: Digest) -> f64 {
        let mut request = Request::new(of_tiles(hash, TILES));
        request.set_timeout(ALLOWED);
        let expired = self
            .server
            .patient()
            .rank_configs(request)
            .await
            .unwrap_err();
        let at_the_end = rows_evaluated(&self.server).await;
        assert_eq!(reason(&expired), "DEADLINE_EXCEEDED");
        self.chunks_since(at_the_end).await
    }

    async fn chunks_since(&self, rows: f64) -> f64 {
        self.server.until_idle().await;
        sleep(Duration::from_millis(100)).await;
        (rows_evaluated(&self.server).await - rows) / CHUNK_ROWS
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_most_a_chunk_is_evaluated_for_a_call_that_has_ended() {
    let _alone = alone().await;
    let graphs = kernels_of(NODES, 2);
    let mut chunks = [Vec::new(), Vec::new()];
    for _ in 0..CALLS {
        let fixture = Fixture::start().await;
        for graph in &graphs {
            fixture.client.put_graph(graph).await.unwrap();
        }
        chunks[0].push(fixture.after_deadline(graphs[0].hash().unwrap()).await);
        chunks[1].push(fixture.after_cancel(&graphs[1]).await);
    }
    for (name, mut chunks) in ["work after deadline", "work after cancel"]
        .iter()
        .zip(chunks)
    {
        chunks.sort_by(f64::total_cmp);
        // The machine may pause between reading the counter and the end of a call, so the best attempt counts.
        assert!(chunks[0] <= 1.0, "{name}: {chunks:?}");
    }
}
