//! A stream of many small batches fails no other call of its connection.

use hlorank_tests::attackers::{Attacker, send_small_batches};
use hlorank_tests::prelude::*;

use crate::streaming::call::kernel;

const LIST: &str = "/hlorank.v1.ModelService/ListModels";

/// A message of no bytes.
const EMPTY: Bytes = Bytes::from_static(&[0; 5]);

async fn other_calls_go_on(flags: &[&str], batches: usize) {
    let server = TestServer::start_with(flags).await;
    let target = server.address().parse().unwrap();
    // No answer fits the window, so the server scores few batches.
    let mut client = Attacker::alone(target).client(0).await.unwrap();
    let stream = send_small_batches(&mut client, batches, kernel())
        .await
        .unwrap();
    // The stream has arrived when a call behind it has been counted. Its answer does not fit the window either.
    let mut behind = Attacker::alone(target).client(65_535).await.unwrap();
    let (response, mut body) = client.begin(LIST, "identity").await.unwrap();
    body.send_data(EMPTY, true).unwrap();
    let head = response.await.unwrap();
    assert_eq!(head.status(), 200, "the connection is open");
    let listed = behind.call(LIST, "identity", EMPTY).await.unwrap();
    assert_eq!(listed.code(), Code::Ok);
    drop(stream);
    server.until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_small_batches_wait_to_be_scored() {
    other_calls_go_on(&[], 10_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_too_far_ahead_ends_alone() {
    other_calls_go_on(&["--stream-window-bytes=131072"], 100_000).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_a_stream_that_has_failed_is_taken_from_the_connection() {
    let server = TestServer::start().await;
    let target = server.address().parse().unwrap();
    let mut client = Attacker::alone(target).client(65_535).await.unwrap();
    for _ in 0..3 {
        let stream = send_small_batches(&mut client, 10_000, graph_by_hash(vec![7; 32]))
            .await
            .unwrap();
        let listed = client.call(LIST, "identity", EMPTY).await.unwrap();
        assert_eq!(listed.code(), Code::Ok);
        drop(stream);
    }
    server.until_idle().await;
}
