use hlorank_client::{GraphHandle, RankRequest};
use hlorank_graph::Configurations;
use hlorank_tests::{
    Figure, SMALL_TILE_MODEL, TILE_MODEL, Target, TestServer, call_times, grid_tiles, kernel_of,
};

const CALLS: usize = 9;
const NODES: u8 = 40;
const TILES: i64 = 1_842;

/// Measures every tile of a kernel with an empty embedding cache.
pub(crate) async fn rank_kernel() {
    let graph = GraphHandle::features(&kernel_of(NODES));
    let configurations = Configurations::Tile(grid_tiles(TILES));
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let mut times = Vec::new();
    for model in [TILE_MODEL, SMALL_TILE_MODEL] {
        let request = RankRequest::new(&graph, &configurations)
            .model(Some(model.parse().expect("a name")))
            .top(10);
        let call = async || drop(client.rank(&request).await.expect("a ranking"));
        times.push(call_times(CALLS, call).await);
    }
    Figure {
        name: "rank_tiles".to_owned(),
        value: times[0][CALLS / 2],
        unit: "ms",
        target: Target::AtMost(25.0),
        how: format!(
            "{TILES} tiles of a {NODES}-node kernel at the client, empty embedding cache; median of {CALLS}, fastest {:.1}; \
             without the Transformer {:.1}",
            times[0][0],
            times[1][CALLS / 2]
        ),
    }
    .write();
}
