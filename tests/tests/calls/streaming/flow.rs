//! The server soon stops reading from a client that takes no scores, and other calls are not delayed.

use hlorank_tests::attackers::{Attacker, send_small_batches};
use hlorank_tests::prelude::*;

use crate::{
    limits::request::{kernel, tiles, wide_tiles},
    streaming::call::{Stream, scores},
};

/// Configurations of a batch of 1 MiB, whose scores are 64 KiB.
const BATCH_CONFIGS: usize = 16_384;

/// Maximum number of batches that the windows of server (8 MiB) and client and the buffers between them hold.
const ROOM: usize = 20;

/// Opens a channel with a window of 64 KiB for answers.
async fn narrow_channel(server: &TestServer) -> Channel {
    let endpoint = Endpoint::from_shared(server.endpoint().to_owned()).unwrap();
    endpoint
        .initial_stream_window_size(65_535)
        .connect()
        .await
        .unwrap()
}

/// Sends batches until the server accepts no more, and returns how many it accepted.
async fn fill(stream: &Stream) -> usize {
    let full_batch = stream_batch(wide_tiles(BATCH_CONFIGS, 16));
    for sent in 0..=ROOM {
        let sending = stream.messages.send(full_batch.clone());
        if timeout(Duration::from_secs(3), sending).await.is_err() {
            return sent;
        }
    }
    panic!("the server took {ROOM} batches, and nobody took their scores");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_takes_no_scores_is_not_read_until_it_does_and_its_other_calls_go_on() {
    let server = TestServer::start().await;
    let channel = narrow_channel(&server).await;
    let mut stream = Stream::started(channel.clone(), kernel()).await;
    let sent = fill(&stream).await;
    assert!(sent > 2, "{sent} batches");
    let request = rank_request(kernel(), wide_tiles(BATCH_CONFIGS, 16));
    let mut service = CostModelServiceClient::new(channel);
    let call = timeout(Duration::from_secs(20), service.rank_configs(request)).await;
    let ranking = call.unwrap().unwrap().into_inner().ranking;
    assert_eq!(ranking.len(), BATCH_CONFIGS);
    for number in 0..sent {
        let scores = scores(stream.next().await.unwrap().unwrap());
        assert_eq!(scores.len(), BATCH_CONFIGS, "batch {number}");
    }
    stream.messages.send(stream_batch(tiles(1))).await.unwrap();
    let (answers, refused) = stream.finish().await;
    assert!(refused.is_none(), "{refused:?}");
    assert_eq!(answers.len(), 2);
}

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
