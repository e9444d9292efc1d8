//! A stream takes memory for its scores and its graph, not for its configurations.

use futures::{StreamExt as _, stream};
use hlorank_proto::v1::rank_configs_stream_request::Part;
use hlorank_tests::{attackers::graphs::reshapes, prelude::*};

use crate::attacked::Attacked;

const BATCH_CONFIGS: usize = 50_000;
const BATCHES: usize = 100;

/// Bytes that all calls may hold, as a flag and as a number: enough for the scores. The configurations take ten times as much.
const CALLS: &str = "--max-call-bytes=209715200";
const CALL_BYTES: usize = 200 << 20;

/// Returns tiles of many dimensions, of which 64 are distinct.
fn tiles() -> Configurations {
    let mut batch = TileBatch::default();
    for config in 0..BATCH_CONFIGS {
        let output_bounds = &[i64::try_from(config % 64).unwrap() + 1; 8];
        let tile = TileConfiguration {
            kernel_bounds: &[],
            output_bounds,
            input_bounds: &[],
        };
        batch.push(tile, &Limits::default()).unwrap();
    }
    Configurations::Tile(batch)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_of_millions_takes_memory_for_its_scores_alone() {
    let attacked = Attacked::start(&[CALLS]).await;
    let connection = Connection::default();
    let client = Client::connect(attacked.endpoint(), connection)
        .await
        .unwrap();
    let (graph, batch) = (
        GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]),
        tiles(),
    );
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph).top(10))
        .await
        .unwrap();
    let before = attacked.server.resident_bytes();
    reset_peak(attacked.server.id());
    for number in 0..BATCHES {
        stream.send(&batch).await.unwrap();
        assert_eq!(
            stream.scores().await.unwrap().unwrap().first,
            number * BATCH_CONFIGS
        );
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
    let endpoint = attacked.endpoint().to_owned();
    let mut calls = CostModelServiceClient::connect(endpoint).await.unwrap();
    let before = attacked.server.resident_bytes();
    reset_peak(attacked.server.id());
    let (mut open, mut refused) = (Vec::new(), 0);
    for number in 0..STREAMS {
        let start = RankConfigsStart {
            graph: Some(reshapes(NODES, number)),
            ..RankConfigsStart::default()
        };
        let part = Some(Part::Start(start));
        let first = stream::iter([RankConfigsStreamRequest { part }]);
        let answers = calls
            .rank_configs_stream(first.chain(stream::pending()))
            .await;
        let mut answers = answers.unwrap().into_inner();
        match answers.message().await {
            Ok(_) => open.push(answers),
            Err(status) => {
                let info = status.get_details_error_info().unwrap();
                assert_eq!(info.reason, "MEMORY_FULL", "{status}");
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
