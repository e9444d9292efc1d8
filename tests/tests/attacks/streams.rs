//! A stream takes memory for its scores, not for its configurations.

use hlorank_tests::prelude::*;

use crate::attacked::Attacked;

const BATCH_CONFIGS: usize = 50_000;
const BATCHES: usize = 100;

/// Allowance for the allocator. The configurations of the stream take ten times as much, even packed.
const SLACK_BYTES: usize = 16 << 20;

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
    let attacked = Attacked::start(&[]).await;
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
    let (mut first, mut most) = (0, 0);
    for number in 0..BATCHES {
        stream.send(&batch).await.unwrap();
        assert_eq!(
            stream.scores().await.unwrap().unwrap().first,
            number * BATCH_CONFIGS
        );
        match number {
            // By then every buffer has reached its largest size.
            0..10 => first = attacked.server.resident_bytes(),
            _ => most = most.max(attacked.server.resident_bytes()),
        }
    }
    let score_bytes = BATCHES * BATCH_CONFIGS * size_of::<f32>();
    println!("{} MiB at first, {} MiB at most", first >> 20, most >> 20);
    assert!(
        most < first + score_bytes + SLACK_BYTES,
        "from {first} to {most} bytes"
    );
    let ranking = stream.finish().await.unwrap();
    assert_eq!(ranking.reuse.configs, (BATCHES * BATCH_CONFIGS) as u64);
    assert_eq!(ranking.best.len(), 10);
}
