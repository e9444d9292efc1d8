//! Health watches and reflection streams are limited apart from requests.

use hlorank_tests::prelude::*;

use crate::limits::request::{kernel, tiles};

#[tokio::test(flavor = "multi_thread")]
async fn watches_of_a_client() {
    let server = TestServer::start_with(&["--max-client-requests=2"]).await;
    let mut health = HealthClient::new(server.channel().await);
    let watch = HealthCheckRequest::default;
    let mut first = health.watch(watch()).await.unwrap().into_inner();
    let second = health.watch(watch()).await.unwrap().into_inner();
    assert!(first.message().await.unwrap().is_some());
    let refused = health.watch(watch()).await.unwrap_err();
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(
        (refused.code(), info.reason.as_str()),
        (Code::ResourceExhausted, "CLIENT_LIMIT")
    );

    health
        .check(watch())
        .await
        .expect("checks are never refused");
    let answer = server.rank(rank_request(kernel(), tiles(3))).await.unwrap();
    assert_eq!(answer.ranking.len(), 3, "watches take no place of requests");
    drop(second);
    while health.watch(watch()).await.is_err() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}
