use hlorank_tests::prelude::*;

const CALLS: usize = 2000;
const SMALL: i64 = 10;
const LARGE: i64 = 100_000;

/// Compares the latency of a small call while another client makes one large call after the other with its latency
/// alone.
pub(crate) async fn of_small_and_large() {
    let server = TestServer::start_with(&["--embedding-cache-bytes", "0"]).await;
    let (client, other) = (server.client().await, server.client().await);
    let graph = GraphHandle::features(&kernel_of(40));
    let [small, large] = [SMALL, LARGE].map(grid_configurations);
    let alone = percentiles(&client, &graph, &small).await;
    let request = RankRequest::new(&graph, &large).top(1);
    let load = async {
        loop {
            other.rank(&request).await.expect("a ranking");
        }
    };
    // The large call in progress after the small calls is cancelled.
    let [p50, p99] = tokio::select! {
        beside = percentiles(&client, &graph, &small) => beside,
        () = load => unreachable!("the load goes on"),
    };
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

/// Returns p50 and p99 in milliseconds.
async fn percentiles(client: &Client, graph: &GraphHandle, batch: &Configurations) -> [f64; 2] {
    let request = RankRequest::new(graph, batch).top(1);
    let times = call_times(CALLS, async || {
        drop(client.rank(&request).await.expect("a ranking"));
    })
    .await;
    [times[CALLS / 2], times[CALLS * 99 / 100]]
}
