use hlorank_tests::prelude::*;

use crate::subjects::WITHOUT_CACHE;

const MODEL: &str = "tile-iree-cpu";
const CALLS: usize = 9;
const NODES: u8 = 40;
const TILES: i64 = 1_842;

/// Measures every tile of a kernel with an empty embedding cache.
pub(crate) async fn rank_kernel() {
    let server = TestServer::start_with(&[WITHOUT_CACHE, &all_models_flag()]).await;
    let client = server.client().await;
    let graph = GraphHandle::features(&kernel_of(NODES));
    let request = RankRequest::new(&graph, &grid_configurations(TILES))
        .model(Some(MODEL.parse().expect("a name")))
        .top(10);
    let times = Times::of_rankings(CALLS, &client, &request).await;
    let how = format!(
        "{TILES} tiles of a {NODES}-node kernel by {MODEL} at the client, empty embedding cache"
    );
    Figure::of_median("rank_tiles", &times, 12.0, &how).write();
}
