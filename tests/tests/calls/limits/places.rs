//! Calls whose message does not arrive take no place of others.

use hlorank_tests::{
    attackers::{RANK, RANK_STREAM, messages::framed},
    prelude::*,
};

use crate::limits::{
    open_call::OpenCall,
    request::{Past, kernel, tiles},
};

#[tokio::test(flavor = "multi_thread")]
async fn calls_without_messages_make_room_for_others() {
    let server = TestServer::start_with(&["--max-requests=8", "--max-client-requests=4"]).await;
    let channel = server.channel().await;
    let mut calls: Vec<_> = (0..20).map(|_| OpenCall::open(&channel, RANK)).collect();
    let mut displaced = Vec::new();
    while displaced.len() < 16 {
        displaced.extend(calls.extract_if(.., |call| !call.is_open()));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    for _ in 0..20 {
        let answer = server.rank(rank_request(kernel(), tiles(3))).await;
        assert_eq!(answer.unwrap().ranking.len(), 3);
    }
    for call in displaced {
        let status = call.ended().await;
        Past::setting("CLIENT_LIMIT", "--max-client-requests", None, 4).check(&status);
        assert!(status.get_details_retry_info().is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_sends_its_message_slowly_is_not_ended_for_those_that_send_nothing() {
    let server = TestServer::start_with(&["--max-client-requests=4"]).await;
    let channel = server.channel().await;
    let mut silent: Vec<_> = [(); 5].map(|()| OpenCall::open(&channel, RANK)).into();
    until_one_ends(&mut silent).await;
    // From here on, all places are taken, and every new call ends the one that has sent nothing for longest.
    let slow = OpenCall::open(&channel, RANK);
    until_one_ends(&mut silent).await;
    let message = rank_request(kernel(), tiles(3)).encode_to_vec();
    let framed = framed(&message, false);
    let (first, last) = framed.split_at(framed.len() - 1);
    for part in first.chunks(8) {
        slow.send(part.to_vec());
        silent.push(OpenCall::open(&channel, RANK));
        until_one_ends(&mut silent).await;
    }
    // A call whose message is complete leaves its place, so no other has to end from here on.
    slow.send(last.to_vec());
    let status = slow.ended().await;
    assert_eq!(status.code(), Code::Ok, "{status}");
}

/// Waits until the server has ended one of some calls, and removes it.
async fn until_one_ends(calls: &mut Vec<OpenCall>) {
    while calls.iter().all(OpenCall::is_open) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    calls.retain(OpenCall::is_open);
}

#[tokio::test(flavor = "multi_thread")]
async fn open_streams_hold_their_windows() {
    const WINDOW: usize = 100_000;
    let flags = ["--stream-window-bytes=100000", "--max-call-bytes=500000"];
    let server = TestServer::start_with(&flags).await;
    let channel = server.channel().await;
    // One client may hold three quarters.
    let streams = [(); 3].map(|()| OpenCall::open(&channel, RANK_STREAM));
    let held = |scrape: &Scrape| scrape.value("hlorank_call_bytes", &[]);
    server
        .until_metrics(|scrape| held(scrape) == 3.0 * WINDOW as f64)
        .await;
    let refused = OpenCall::open(&channel, RANK_STREAM).ended().await;
    assert_eq!(reason(&refused), "MEMORY_FULL", "{refused}");
    drop(streams);
    server.until_metrics(|scrape| held(scrape) == 0.0).await;
}
