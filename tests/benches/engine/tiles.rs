use std::time::Instant;

use hlorank_client::{GraphHandle, RankRequest};
use hlorank_graph::Configurations;
use hlorank_tests::{Figure, Target, TestServer, chain_kernel, tiles};

const CALLS: usize = 9;
const NODES: u8 = 40;
const TILES: i64 = 1_842;

/// Every tile of a kernel, with nothing in the embedding cache.
pub(crate) async fn rank_kernel() {
    let opcodes: Vec<u8> = (1..=NODES).collect();
    let graph = GraphHandle::features(&chain_kernel(&opcodes, &[128, 64, 256]));
    let outputs: Vec<[i64; 2]> = (0..TILES).map(|tile| [1 + tile % 43, 1 + tile / 43]).collect();
    let configurations = Configurations::Tile(tiles(&outputs));
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let client = server.client().await;
    let mut times = Vec::new();
    for model in ["tile-xla-cpu", "tile-xla-cpu-sage"] {
        let request =
            RankRequest::new(&graph, &configurations).model(Some(model.parse().expect("a name"))).top(10);
        let mut own = Vec::new();
        for _ in 0..CALLS {
            let start = Instant::now();
            client.rank(&request).await.expect("a ranking");
            own.push(start.elapsed().as_secs_f64() * 1e3);
        }
        own.sort_by(f64::total_cmp);
        times.push(own);
    }
    Figure {
        name: "rank_tiles",
        value: times[0][CALLS / 2],
        unit: "ms",
        target: Target::AtMost(60.0),
        how: format!(
            "{TILES} tiles of a {NODES}-node kernel at the client, empty embedding cache; median of {CALLS}, fastest {:.1}; \
             without the Transformer {:.1}",
            times[0][0],
            times[1][CALLS / 2]
        ),
    }
    .write();
}
