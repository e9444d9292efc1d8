//! A stream takes memory for its scores and its graph, not for its configurations, and not for scores that nobody reads.

use futures::{StreamExt as _, stream};
use hlorank_tests::{
    attackers::{graphs::reshapes, unread_streams},
    prelude::*,
};

use crate::attacked::Attacked;

const BATCH_CONFIGS: usize = 50_000;
const BATCHES: usize = 100;

/// Bytes that all calls may hold, as a flag and as a number: enough for the scores. The configurations take ten times as much.
const CALLS: &str = "--max-call-bytes=209715200";
const CALL_BYTES: usize = 200 << 20;

/// Returns tiles of many dimensions, of which 64 are distinct.
fn many_tiles() -> Configurations {
    let outputs: Vec<[i64; 8]> = (0..64).map(|size| [size + 1; 8]).collect();
    let distinct = tiles(&outputs);
    let repeated: Vec<usize> = (0..BATCH_CONFIGS).map(|config| config % 64).collect();
    Configurations::Tile(distinct.select(&repeated))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_millions_takes_memory_for_its_scores_alone() {
    let attacked = Attacked::start(&[CALLS]).await;
    let batch = many_tiles();
    let graph = GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]);
    let client = attacked.server.client().await;
    let request = StreamRequest::new(&graph).top(10);
    let mut stream = client.rank_stream(&request).await.unwrap();
    let before = attacked.server.resident_bytes();
    reset_peak(attacked.server.id());
    for number in 0..BATCHES {
        stream.send(&batch).await.unwrap();
        let scores = stream.scores().await.unwrap().unwrap();
        assert_eq!(scores.first, number * BATCH_CONFIGS);
    }
    let most = peak_bytes(attacked.server.id());
    println!("{} MiB before, {} MiB at most", before >> 20, most >> 20);
    assert!(
        most < before + with_fragments(CALL_BYTES),
        "from {before} to {most} bytes"
    );
    let ranking = stream.finish().await.unwrap();
    assert_eq!(ranking.reuse.configs, (BATCHES * BATCH_CONFIGS) as u64);
    assert_eq!(ranking.best.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_whose_graphs_have_left_the_cache_hold_what_is_counted() {
    const STREAMS: u32 = 100;
    const NODES: usize = 4_000;
    const CACHE: &str = "--graph-cache-bytes=1048576";
    let attacked = Attacked::start(&[CALLS, CACHE]).await;
    let mut calls = attacked.server.cost_model().await;
    let before = attacked.server.resident_bytes();
    reset_peak(attacked.server.id());
    let (mut open, mut refused) = (Vec::new(), 0);
    for number in 0..STREAMS {
        let first = stream::iter([stream_start(reshapes(NODES, number))]);
        let messages = first.chain(stream::pending());
        let answers = calls.rank_configs_stream(messages).await;
        let mut answers = answers.unwrap().into_inner();
        match answers.message().await {
            Ok(_) => open.push(answers),
            Err(status) => {
                assert_eq!(reason(&status), "MEMORY_FULL", "{status}");
                refused += 1;
            }
        }
    }
    let took = peak_bytes(attacked.server.id()).saturating_sub(before);
    println!(
        "{} streams took {} MiB, {refused} were refused",
        open.len(),
        took >> 20
    );
    assert!(!open.is_empty() && refused > 0);
    assert!(
        took < with_fragments(CALL_BYTES + (1 << 20)),
        "{took} bytes"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_that_nobody_reads_hold_what_is_counted() {
    const CALL_BYTES: usize = 32 << 20;
    let attacked = Attacked::start(&["--max-call-bytes=33554432"]).await;
    let attack = || unread_streams(&attacked.aim().from_addresses(1), 8, 4);
    // The attack is complete when no more bytes are taken.
    let took = attacked
        .endures("unread streams", attack, async |attack| {
            let mut before = None;
            while before != Some(attack.sent().bytes()) || before == Some(0) {
                before = Some(attack.sent().bytes());
                sleep(Duration::from_millis(500)).await;
            }
        })
        .await;
    assert!(took < with_fragments(CALL_BYTES), "{took} bytes");
}
