//! A call with any deadline has a proper answer, and a call without any time left costs nothing.

use futures::{StreamExt as _, stream};
use hlorank_tests::prelude::*;

use crate::under_load::requests::{alone, of_tiles, scores};

/// Too little time to score a batch.
const NO_TIME: [&str; 3] = ["0n", "1n", "1u"];

/// Very long deadlines, up to the longest that the header can hold.
const MUCH_TIME: [&str; 4] = ["99999999n", "99999999S", "99999999M", "99999999H"];

const TILES: i64 = 20;
const CALLS: usize = 3_000;
const AT_ONCE: usize = 64;

fn within<T>(allowed: &str, message: T) -> Request<T> {
    with_headers(message, &[("grpc-timeout", allowed)])
}

fn assert_expired(status: &Status) {
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    assert_eq!(reason(status), "DEADLINE_EXCEEDED");
    let request = status.get_details_request_info().unwrap();
    assert!(!request.request_id.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_calls_without_time_cost_no_evaluation_and_the_longest_deadlines_are_kept() {
    let _alone = alone().await;
    let server = TestServer::start().await;
    let client = server.client().await;
    let graph = GraphHandle::features(&kernel_of(40));
    let hash = client.put_graph(&graph).await.unwrap().hash;
    let mut service = server.patient();
    let calls = (0..CALLS).map(|number| {
        let request = within(NO_TIME[number % NO_TIME.len()], of_tiles(hash, TILES));
        let mut service = service.clone();
        async move { service.rank_configs(request).await.unwrap_err() }
    });
    let expired: Vec<Status> = stream::iter(calls)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    expired.iter().for_each(assert_expired);
    let new = PutGraphRequest {
        graph: Some(kernel_graph(graph_of_module(two_dots()))),
    };
    let new = within(NO_TIME[0], new);
    assert_expired(&service.put_graph(new).await.unwrap_err());
    server.until_idle().await;
    let scrape = server.scrape().await;
    assert_eq!(
        scrape.value("hlorank_cache_entries", &[("cache", "graphs_by_source")]),
        1.0,
        "the new graph was not read"
    );
    assert_eq!(
        scrape.value("hlorank_errors_total", &[("reason", "DEADLINE_EXCEEDED")]),
        (CALLS + 1) as f64
    );
    let looked_up = scrape.sum("hlorank_cache_requests_total", &[("cache", "embeddings")]);
    assert_eq!(looked_up, 0.0);

    let expected = scores(&client, &graph, &grid_configurations(TILES)).await;
    for allowed in MUCH_TIME {
        let answer = service
            .rank_configs(within(allowed, of_tiles(hash, TILES)))
            .await
            .unwrap_or_else(|error| panic!("{allowed:?}: {error}"));
        assert_eq!(bits(&answer.into_inner().scores), expected, "{allowed:?}");
    }
    let malformed = within("1s", of_tiles(hash, TILES));
    let refused = service.rank_configs(malformed).await.unwrap_err();
    assert_eq!(reason(&refused), "HEADER_INVALID");
}
