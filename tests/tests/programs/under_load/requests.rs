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

/// Ranks configurations with scores.
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

/// Returns the bits of the scores of configurations.
pub(crate) async fn scores(
    client: &Client,
    graph: &GraphHandle,
    configurations: &Configurations,
) -> Vec<u32> {
    bits(&rank(client, graph, configurations).await.scores)
}

/// Returns the number of rows that the server has evaluated, if its cache has room for all of them.
pub(crate) fn rows(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_cache_entries", &[("cache", "embeddings")])
}

/// Returns the number of rows that the server has evaluated until now.
pub(crate) async fn rows_evaluated(server: &TestServer) -> f64 {
    rows(&server.scrape().await)
}
