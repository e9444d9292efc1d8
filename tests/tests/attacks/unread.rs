//! Clients that send and do not read.

use hlorank_tests::{attackers::unread_streams, with_fragments};

use crate::attacked::Attacked;

const CONNECTIONS: usize = 8;
const STREAMS: usize = 4;

/// Bytes that all calls may hold, as a flag and as a number.
const CALL_BYTES: &str = "--max-call-bytes=33554432";
const MAX_BYTES: usize = 32 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_reads_hold_what_is_counted() {
    let attacked = Attacked::start(&[CALL_BYTES]).await;
    let attack = || unread_streams(&attacked.aim().from_addresses(1), CONNECTIONS, STREAMS);
    // The attack is complete when no more bytes are taken.
    let outcome = attacked
        .endures("unread streams", attack, async |attack| {
            let mut before = None;
            while before != Some(attack.sent().bytes()) || before == Some(0) {
                before = Some(attack.sent().bytes());
                tokio::time::sleep(std::time::Duration::from_millis(500)).await;
            }
        })
        .await;
    assert!(outcome.bytes < with_fragments(MAX_BYTES), "{outcome:?}");
}
