use hlorank_tests::prelude::*;

use crate::subjects::WITHOUT_CACHE;

const CALLS: usize = 2000;
const SMALL: i64 = 10;
const LARGE: i64 = 100_000;

/// Compares the latency of a small call while another client makes one large call after the other with its latency
/// alone.
pub(crate) async fn of_small_and_large() {
    let server = TestServer::start_with(&[WITHOUT_CACHE]).await;
    let (client, other) = (server.client().await, server.client().await);
    let graph = GraphHandle::features(&kernel_of(40));
    let [small, large] =
        [SMALL, LARGE].map(|count| RankRequest::new(&graph, &grid_configurations(count)).top(1));
    let alone = Times::of_rankings(CALLS, &client, &small).await;
    let load = async {
        loop {
            other.rank(&large).await.expect("a ranking");
        }
    };
    // The large call in progress after the small calls is cancelled.
    let beside = tokio::select! {
        beside = Times::of_rankings(CALLS, &client, &small) => beside,
        () = load => unreachable!("the load goes on"),
    };
    Figure {
        name: "small_call_beside_large".to_owned(),
        value: beside.percentile(99) / alone.percentile(99),
        unit: "x",
        target: Target::AtMost(2.0),
        how: format!(
            "p99 of {SMALL} tiles while another client ranks {LARGE} again and again, over p99 alone: {:.1} and {:.1} ms; \
             p50 {:.1} and {:.1} ms",
            beside.percentile(99),
            alone.percentile(99),
            beside.median(),
            alone.median(),
        ),
    }
    .write();
}
