//! A call with any deadline has a proper answer, and a call without any time left costs nothing.

use futures::{StreamExt as _, stream};
use hlorank_tests::prelude::*;
use tonic::Response;

use crate::under_load::requests::{alone, bits, of_tiles, rank};

/// Too little time to score a batch.
const NO_TIME: [&str; 3] = ["0n", "1n", "1u"];

/// Very long deadlines, up to the longest that the header can hold.
const MUCH_TIME: [&str; 4] = ["99999999n", "99999999S", "99999999M", "99999999H"];

const TILES: i64 = 20;
const CALLS: usize = 3_000;
const AT_ONCE: usize = 64;

async fn ranked(
    server: &TestServer,
    hash: Digest,
    allowed: &'static str,
) -> Result<Response<RankConfigsResponse>, Status> {
    let request = with_headers(of_tiles(hash, TILES), &[("grpc-timeout", allowed)]);
    server.patient().rank_configs(request).await
}

fn assert_expired(status: &Status) {
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().reason, "DEADLINE_EXCEEDED");
    assert!(!details.request_info().unwrap().request_id.is_empty());
}

async fn put(client: &Client) -> (GraphHandle, Digest) {
    let graph = GraphHandle::features(&kernel_of(40));
    let hash = client.put_graph(&graph).await.unwrap().hash;
    (graph, hash)
}

#[tokio::test]
async fn every_deadline_has_a_proper_answer() {
    let _alone = alone().await;
    let server = TestServer::start().await;
    let client = server.client().await;
    let (graph, hash) = put(&client).await;
    for allowed in NO_TIME {
        assert_expired(&ranked(&server, hash, allowed).await.unwrap_err());
    }
    assert_eq!(
        server
            .scrape()
            .await
            .value("hlorank_cache_entries", &[("cache", "embeddings")]),
        0.0
    );
    let expected = bits(&rank(&client, &graph, &grid_configurations(TILES)).await);
    for allowed in MUCH_TIME {
        let answer = ranked(&server, hash, allowed)
            .await
            .unwrap_or_else(|error| panic!("{allowed:?}: {error}"));
        let found: Vec<u32> = answer
            .into_inner()
            .scores
            .iter()
            .map(|score| score.to_bits())
            .collect();
        assert_eq!(found, expected, "{allowed:?}");
    }
    let refused = ranked(&server, hash, "1s").await.unwrap_err();
    assert_eq!(reason(&refused), "HEADER_INVALID");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_calls_without_time_cost_no_evaluation() {
    let _alone = alone().await;
    let server = TestServer::start().await;
    let client = server.client().await;
    let (graph, hash) = put(&client).await;
    let service = server.patient();
    let calls = (0..CALLS).map(async |number| {
        let mut request = Request::new(of_tiles(hash, TILES));
        let allowed = NO_TIME[number % NO_TIME.len()];
        request
            .metadata_mut()
            .insert("grpc-timeout", allowed.parse().unwrap());
        service.clone().rank_configs(request).await.unwrap_err()
    });
    let expired: Vec<Status> = stream::iter(calls)
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    expired.iter().for_each(assert_expired);
    let new = PutGraphRequest {
        graph: Some(kernel_graph(graph_of_module(two_dots()))),
    };
    let new = with_headers(new, &[("grpc-timeout", NO_TIME[0])]);
    assert_expired(&service.clone().put_graph(new).await.unwrap_err());
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
    for looked_up in ["hit", "miss"] {
        assert_eq!(
            scrape.value(
                "hlorank_cache_requests_total",
                &[("cache", "embeddings"), ("result", looked_up)]
            ),
            0.0
        );
    }
    rank(&client, &graph, &grid_configurations(TILES)).await;
}
