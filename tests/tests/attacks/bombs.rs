//! Messages that are small until they are decompressed, or that are short but claim a length.

use std::io::{self, Read as _};

use hlorank_tests::attackers::{
    RANK, WINDOW_BYTES,
    messages::{framed, gzip},
    slow_bombs,
};
use hlorank_tests::prelude::*;

use crate::attacked::{Attacked, until_sent};

/// Size of a bomb once it is decompressed: the default of `--max-message-bytes`, and many times that.
const BYTES: u64 = (64 << 20) - 1024;
const BOMB_BYTES: u64 = 512 << 20;

/// Maximum size of a message as a multiple of its compressed size.
const MAX_RATIO: usize = 500;

/// Allowance for the allocator and for buffers of connections.
const SLACK_BYTES: usize = 24 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_sender_of_small_messages_delays_nobody() {
    let attacked = Attacked::start(&[]).await;
    let bomb = framed(&gzip(io::repeat(0).take(BYTES)), true);
    let attack = || slow_bombs(&attacked.aim().from_addresses(2), 2, bomb, 16 << 10);
    attacked
        .endures("slow bombs", attack, async |attack| {
            until_sent(attack, |sent| sent.calls() >= 6).await;
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_grow_are_refused() {
    // A long one reaches the limit of its size first, one of that size the limit of its ratio.
    for (bytes, limit) in [(BOMB_BYTES, Some("--max-message-bytes")), (BYTES, None)] {
        // A server for each message, because the allocator keeps a part of what an earlier message took.
        let attacked = Attacked::start(&[]).await;
        let message = framed(&gzip(io::repeat(0).take(bytes)), true);
        // Until a message is refused, it is decompressed.
        let allowed = usize::try_from(BYTES)
            .unwrap()
            .min(MAX_RATIO * message.len());
        let before = attacked.server.resident_bytes();
        reset_peak(attacked.server.id());
        for _ in 0..4 {
            let mut client = attacked.stranger().client(WINDOW_BYTES).await.unwrap();
            let refused = client.call(RANK, "gzip", message.clone()).await.unwrap();
            let info = refused.get_details_error_info().unwrap();
            let found = (refused.code(), info.reason.as_str());
            assert_eq!(found, (Code::ResourceExhausted, "MESSAGE_TOO_LARGE"));
            let found = info.metadata.get("limit").map(String::as_str);
            assert_eq!(found, limit, "no setting raises the limit of a ratio");
        }
        let took = peak_bytes(attacked.server.id()).saturating_sub(before);
        println!("{} KiB for {} MiB", took >> 10, bytes >> 20);
        assert!(took < allowed + SLACK_BYTES, "{limit:?}: {took} bytes");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lengths_that_are_claimed_take_no_memory() {
    let attacked = Attacked::start(&[]).await;
    let mut client = attacked.stranger().client(WINDOW_BYTES).await.unwrap();
    let before = attacked.server.resident_bytes();
    let mut begun = Vec::new();
    for _ in 0..64 {
        let (response, mut body) = client.begin(RANK, "identity").await.unwrap();
        // The maximum length of a message, and its first bytes.
        let head = [&[0][..], &(64_u32 << 20).to_be_bytes(), &[0; 100]].concat();
        body.send_data(Bytes::from(head), false).unwrap();
        begun.push((response, body));
    }
    let arrived = |scrape: &Scrape| scrape.value("hlorank_call_bytes", &[]) >= 64.0 * 100.0;
    attacked.server.until_metrics(arrived).await;
    sleep(Duration::from_millis(200)).await;
    let took = attacked.server.resident_bytes().saturating_sub(before);
    println!("64 claims of 64 MiB took {} KiB", took >> 10);
    assert!(took < SLACK_BYTES, "{took} bytes");
}
