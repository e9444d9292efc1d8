use hlorank_tests::prelude::*;

const MODEL: &str = "tile-iree-cpu";
const CALLS: usize = 9;
const NODES: u8 = 40;
const TILES: i64 = 1_842;

/// Measures every tile of a kernel with an empty embedding cache.
pub(crate) async fn rank_kernel() {
    let graph = GraphHandle::features(&kernel_of(NODES));
    let configurations = grid_configurations(TILES);
    let server = TestServer::start_with(&["--embedding-cache-bytes=0", &all_models_flag()]).await;
    let client = server.client().await;
    let request = RankRequest::new(&graph, &configurations)
        .model(Some(MODEL.parse().expect("a name")))
        .top(10);
    let call = async || drop(client.rank(&request).await.expect("a ranking"));
    let times = call_times(CALLS, call).await;
    Figure {
        name: "rank_tiles".to_owned(),
        value: times[CALLS / 2],
        unit: "ms",
        target: Target::AtMost(12.0),
        how: format!(
            "{TILES} tiles of a {NODES}-node kernel by {MODEL} at the client, empty embedding cache; median of {CALLS}, fastest {:.1}",
            times[0]
        ),
    }
    .write();
}
