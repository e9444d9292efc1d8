use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::Instant,
};

use hlorank_client::{Client, GraphHandle, RankRequest};
use hlorank_graph::Configurations;
use hlorank_tests::{Figure, Target, TestServer, grid_tiles, kernel_of};
use tokio::join;

const CALLS: usize = 300;
const SMALL: i64 = 10;
const LARGE: i64 = 20_000;

/// A small call's latency while another client has one large call after the other, beside its latency alone.
pub(crate) async fn of_small_and_large() {
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let (client, other) = (server.client().await, server.client().await);
    let graph = GraphHandle::features(&kernel_of(40));
    let [small, large] = [SMALL, LARGE].map(|count| Configurations::Tile(grid_tiles(count)));
    let alone = percentiles(&client, &graph, &small).await;
    let stop = AtomicBool::new(false);
    let request = RankRequest::new(&graph, &large).top(1);
    let load = async {
        while !stop.load(Ordering::Relaxed) {
            // What is under way when the small calls are done is cancelled.
            tokio::select! {
                ranking = other.rank(&request) => drop(ranking.expect("a ranking")),
                () = stopped(&stop) => {}
            }
        }
    };
    let measure = async {
        let beside = percentiles(&client, &graph, &small).await;
        stop.store(true, Ordering::Relaxed);
        beside
    };
    let ([p50, p99], ()) = join!(measure, load);
    Figure {
        name: "small_call_beside_large".to_owned(),
        value: p99 / alone[1],
        unit: "x",
        target: Target::AtMost(2.0),
        how: format!(
            "p99 of {SMALL} tiles while another client ranks {LARGE} again and again, over p99 alone: {p99:.1} and {:.1} ms; \
             p50 {p50:.1} and {:.1} ms",
            alone[1], alone[0]
        ),
    }
    .write();
}

async fn stopped(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// Milliseconds of the median call, and of the slowest of a hundred.
async fn percentiles(client: &Client, graph: &GraphHandle, batch: &Configurations) -> [f64; 2] {
    let mut times = Vec::new();
    for _ in 0..CALLS {
        let start = Instant::now();
        client.rank(&RankRequest::new(graph, batch).top(1)).await.expect("a ranking");
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    [times[CALLS / 2], times[CALLS * 99 / 100]]
}
