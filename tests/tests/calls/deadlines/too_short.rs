//! A call that cannot be completed in time is rejected before it is started, once the server knows how long work takes.

use hlorank_tests::prelude::*;

/// Enough time for many small calls, but less than [`MANY_TILES`] take.
const ALLOWED: Duration = Duration::from_secs(2);

/// Number of tiles from which the server learns how long work takes.
const SOME_TILES: i64 = 300;

#[tokio::test]
async fn a_call_that_takes_longer_than_it_may_is_refused_at_once() {
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = GraphHandle::features(&slow_kernel());
    client.put_graph(&graph).await.unwrap();
    let [few, some, many] = [10, SOME_TILES, MANY_TILES].map(grid_configurations);
    let request = RankRequest::new(&graph, &many).timeout(ALLOWED);
    let unknown = client.rank(&request).await.unwrap_err();
    says!(unknown.to_string(), "did not answer within 2s");
    let ranked = client.rank(&RankRequest::new(&graph, &some)).await;
    ranked.expect("nothing ends it");

    let scored = |scrape: &Scrape| scrape.sum("hlorank_configs_total", &[("model", TILE_MODEL)]);
    let before = scored(&server.scrape().await);
    let started = Instant::now();
    let refused = client.rank(&request).await.unwrap_err();
    let took = started.elapsed();
    assert_reason(&refused, "DEADLINE_TOO_SHORT");
    says!(refused.to_string(), "takes about");
    assert!(took < ALLOWED, "{took:?}");
    let after = server.scrape().await;
    let reason = [("reason", "DEADLINE_TOO_SHORT")];
    assert_eq!(after.sum("hlorank_errors_total", &reason), 1.0);
    assert_eq!(scored(&after), before, "nothing was scored");

    let request = RankRequest::new(&graph, &few).timeout(ALLOWED);
    let ranked = client.rank(&request).await;
    ranked.expect("there is time for a few");
}
