//! Requests of the tests, and the metrics that they check.

use hlorank_tests::prelude::*;
use tokio::sync::{Mutex, MutexGuard};

/// Number of nodes of the kernels.
const NODES: usize = 40;

/// Maximum time of something that takes milliseconds, generous for a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Waits until no other test of this program runs, and blocks others until the guard is dropped. The tests load their
/// servers and measure the memory of the process.
pub(crate) async fn alone() -> MutexGuard<'static, ()> {
    ONE_AT_A_TIME.lock().await
}

/// Returns distinct kernels of this number of nodes.
pub(crate) fn kernels_of(nodes: usize, count: u16) -> Vec<Arc<GraphHandle>> {
    let opcodes: Vec<u8> = (1..=119).cycle().take(nodes).collect();
    let kernel = |size| GraphHandle::features(&chain_kernel(&opcodes, &[size, 64]));
    (1..=count).map(|size| Arc::new(kernel(size))).collect()
}

/// Returns distinct kernels.
pub(crate) fn kernels(count: u16) -> Vec<Arc<GraphHandle>> {
    kernels_of(NODES, count)
}

/// Returns a request to rank this number of tiles of a cached graph.
pub(crate) fn of_tiles(hash: Digest, count: i64) -> RankConfigsRequest {
    rank_request(
        graph_by_hash(hash.0.to_vec()),
        packed_tiles(&grid_tiles(count)),
    )
    .with_scores()
}

/// Connects a client without retries.
pub(crate) async fn connect(server: &TestServer) -> Client {
    connect_with(server, Connection::default()).await
}

/// Connects a client with these settings and without retries.
pub(crate) async fn connect_with(server: &TestServer, connection: Connection) -> Client {
    let connection = Connection {
        retries: 0,
        ..connection
    };
    server.client_with(connection).await
}

pub(crate) async fn rank(
    client: &Client,
    graph: &GraphHandle,
    configurations: &Configurations,
) -> Ranking {
    client
        .rank(&RankRequest::new(graph, configurations).with_scores())
        .await
        .unwrap()
}

/// Returns the bits of the scores.
pub(crate) fn bits(ranking: &Ranking) -> Vec<u32> {
    ranking.scores.iter().map(|score| score.to_bits()).collect()
}

/// Returns the number of rows that the server has evaluated, if its cache has room for all of them.
pub(crate) async fn rows_evaluated(server: &TestServer) -> f64 {
    server
        .scrape()
        .await
        .value("hlorank_cache_entries", &[("cache", "embeddings")])
}

pub(crate) async fn requests(server: &TestServer) -> f64 {
    server
        .scrape()
        .await
        .value("hlorank_requests_in_progress", &[])
}
