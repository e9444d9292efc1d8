//! A call that cannot be completed in time is rejected before it is started, once the server knows how long work takes.

use hlorank_tests::prelude::*;

use crate::deadlines::request::{MODEL, assert_refused, of_tiles, put, within};

/// Enough time for many small calls, but less than [`MANY_TILES`] take.
const ALLOWED: Duration = Duration::from_secs(2);

/// Number of tiles from which the server learns how long work takes.
const SOME_TILES: i64 = 300;

#[tokio::test]
async fn a_call_that_takes_longer_than_it_may_is_refused_at_once() {
    let server = TestServer::start().await;
    let hash = put(&server, &slow_kernel()).await;
    let mut service = server.patient();
    let unknown = service
        .rank_configs(within(ALLOWED, of_tiles(hash, MANY_TILES)))
        .await
        .unwrap_err();
    assert_refused(&unknown, "DEADLINE_EXCEEDED");
    service
        .rank_configs(of_tiles(hash, SOME_TILES))
        .await
        .expect("nothing ends it");

    let before = server.scrape().await;
    let started = Instant::now();
    let refused = service
        .rank_configs(within(ALLOWED, of_tiles(hash, MANY_TILES)))
        .await
        .unwrap_err();
    let took = started.elapsed();
    assert_refused(&refused, "DEADLINE_TOO_SHORT");
    says!(refused.message(), "takes about");
    assert!(took < ALLOWED, "{took:?}");
    let after = server.scrape().await;
    assert_eq!(
        after.sum("hlorank_errors_total", &[("reason", "DEADLINE_TOO_SHORT")]),
        1.0
    );
    let scored = |scrape: &Scrape| scrape.sum("hlorank_configs_total", &[("model", MODEL)]);
    assert_eq!(scored(&before), scored(&after), "nothing was scored");

    service
        .rank_configs(within(ALLOWED, of_tiles(hash, 10)))
        .await
        .expect("there is time for a few");
}

#[tokio::test]
async fn the_client_library_tells_the_estimate() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let (graph, large) = (
        GraphHandle::features(&slow_kernel()),
        grid_configurations(MANY_TILES),
    );
    client.put_graph(&graph).await.unwrap();
    let request = RankRequest::new(&graph, &large).timeout(ALLOWED);
    let late = client.rank(&request).await.unwrap_err();
    says!(late.to_string(), "did not answer within 2s");
    let some = grid_configurations(SOME_TILES);
    client
        .rank(&RankRequest::new(&graph, &some))
        .await
        .expect("nothing ends it");
    let refused = client.rank(&request).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::DeadlineExceeded));
    assert_reason(&refused, "DEADLINE_TOO_SHORT");
}
