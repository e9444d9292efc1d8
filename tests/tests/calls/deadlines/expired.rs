use hlorank_tests::prelude::*;

use crate::deadlines::request::{assert_expired, of_tiles, put, within};

/// Less time than [`MANY_TILES`] take.
const ALLOWED: Duration = Duration::from_millis(300);

/// Enough time for a stream to start, but less than [`MANY_TILES`] take.
const STREAMED: Duration = Duration::from_secs(2);

/// Maximum wait for an immediate answer on a busy machine, less than [`MANY_TILES`] take.
const PATIENCE: Duration = Duration::from_secs(5);

#[tokio::test]
async fn a_call_that_is_no_stream_expires_with_a_reason() {
    let server = TestServer::start().await;
    let hash = put(&server, &slow_kernel()).await;
    let started = Instant::now();
    let request = within(ALLOWED, of_tiles(hash, MANY_TILES));
    let expired = server.patient().rank_configs(request).await.unwrap_err();
    let took = started.elapsed();
    assert_expired(&expired);
    says!(expired.message(), "300ms");
    assert!((ALLOWED.mul_f64(0.9)..PATIENCE).contains(&took), "{took:?}");
    let scrape = server.scrape().await;
    for (family, label, count) in [
        ("requests", ("code", "DEADLINE_EXCEEDED"), 1.0),
        ("requests", ("code", "CANCELLED"), 0.0),
        ("errors", ("reason", "DEADLINE_EXCEEDED"), 1.0),
        // Nothing counts as scored.
        ("configs", ("model", TILE_MODEL), 0.0),
    ] {
        let counted = scrape.sum(&format!("hlorank_{family}_total"), &[label]);
        assert_eq!(counted, count, "{family} {label:?}");
    }
}

#[tokio::test]
async fn a_stream_that_has_begun_expires_with_a_reason_and_its_work_stops() {
    let server = TestServer::start().await;
    let graph = graph_by_hash(put(&server, &slow_kernel()).await.0.to_vec());
    let messages = [
        stream_start(graph),
        stream_batch(packed_tiles(&grid_tiles(MANY_TILES))),
    ];
    let messages = within(STREAMED, tokio_stream::iter(messages));
    let answers = server.patient().rank_configs_stream(messages).await;
    let mut answers = answers.unwrap().into_inner();
    let started = answers.message().await.unwrap();
    assert!(started.is_some(), "the stream has started");
    let expired = answers.message().await.unwrap_err();
    assert_eq!(reason(&expired), "DEADLINE_EXCEEDED");
    // If the work had continued, all rows would be in the cache by then.
    server.until_idle().await;
    let scrape = server.scrape().await;
    let rows = scrape.value("hlorank_cache_entries", &[("cache", "embeddings")]);
    assert!(
        0.0 < rows && rows < MANY_TILES as f64,
        "{rows} of {MANY_TILES} rows were evaluated"
    );
}
