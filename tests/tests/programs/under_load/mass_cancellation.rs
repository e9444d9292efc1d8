//! Nothing remains of cancelled calls, however many are cancelled at once.

use hlorank_tests::prelude::*;
use tokio::time::Instant;

use crate::under_load::requests::{
    alone, bits, connect, connect_with, kernels, rank, rows_evaluated, tiles,
};

const CALLS: usize = 1_000;

/// Number of calls, of which some may end before the last has started.
const AT_ONCE: usize = 900;

const CONNECTIONS: usize = 8;
const KERNELS: u16 = 100;

/// Tiles per call. All calls together take ten seconds or more.
const TILES: i64 = 2_000;

/// Flag that admits all calls.
const FLAGS: [&str; 3] = [
    "--max-requests=2000",
    "--max-client-requests=2000",
    "--max-queued-nodes=1000000000",
];

/// Returns the shortest time of several calls with the same rows, and their scores.
async fn fastest(
    client: &Client,
    graph: &GraphHandle,
    tiles: &Configurations,
) -> (Duration, Vec<u32>) {
    let mut fastest = (Duration::MAX, Vec::new());
    for _ in 0..5 {
        let started = Instant::now();
        let found = bits(&rank(client, graph, tiles).await);
        fastest = fastest.min((started.elapsed(), found));
    }
    fastest
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_of_a_thousand_calls_cancelled_at_once() {
    let _alone = alone().await;
    let server = TestServer::start_with(&FLAGS).await;
    let (client, graphs) = (connect(&server).await, kernels(KERNELS));
    for graph in &graphs {
        client.put_graph(graph).await.unwrap();
    }
    let small = tiles(8);
    let (before, expected) = fastest(&client, &graphs[0], &small).await;

    let (mut calls, large) = (JoinSet::new(), Arc::new(tiles(TILES)));
    for connection in 0..CONNECTIONS {
        let endless = Connection {
            timeout: None,
            ..Connection::default()
        };
        let client = connect_with(&server, endless).await;
        for number in (connection..CALLS).step_by(CONNECTIONS) {
            let (client, graph) = (client.clone(), Arc::clone(&graphs[number % graphs.len()]));
            let large = Arc::clone(&large);
            calls.spawn(async move {
                client
                    .rank(&RankRequest::new(&graph, &large).top(1))
                    .await
                    .map(drop)
            });
        }
    }
    server
        .until_metrics(|scrape| scrape.value("hlorank_requests_in_progress", &[]) >= AT_ONCE as f64)
        .await;
    calls.abort_all();
    let mut cancelled = 0;
    while let Some(call) = calls.join_next().await {
        cancelled += usize::from(call.is_err());
    }
    assert!(
        cancelled > CALLS / 2,
        "{cancelled} of {CALLS} calls were cancelled"
    );
    server.until_idle().await;

    let evaluated = rows_evaluated(&server).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(
        rows_evaluated(&server).await,
        evaluated,
        "nothing goes on for them"
    );
    let all = f64::from(KERNELS) * TILES as f64;
    assert!(evaluated < all, "all of {all} rows were evaluated");
    let (after, found) = fastest(&client, &graphs[0], &small).await;
    assert_eq!(found, expected);
    assert!(
        after < 10 * before + Duration::from_millis(500),
        "{after:?}, and {before:?} before"
    );
}
