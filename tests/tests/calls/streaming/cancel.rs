//! A stream counts as a request in progress until it ends, in whatever way it ends.

use hlorank_client::RankStream;
use hlorank_tests::prelude::*;

use crate::streaming::call::tile_batch;

async fn open(server: &TestServer) -> Result<RankStream, ClientError> {
    let graph = GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]);
    // A client that retries would hide for half a minute that there is no place.
    let client = server.client_without_retries().await;
    client.rank_stream(&StreamRequest::new(&graph)).await
}

#[tokio::test]
async fn a_stream_that_is_finished_refused_or_dropped_gives_its_place_back() {
    let server = TestServer::start_with(&["--max-requests=1", "--max-configs=2"]).await;
    let mut finished = open(&server).await.unwrap();
    assert_reason(&open(&server).await.unwrap_err(), "OVERLOADED");
    // The limit is that of a batch, and scores need not be taken.
    finished.send(&tile_batch(2)).await.unwrap();
    finished.send(&tile_batch(2)).await.unwrap();
    let ranking = finished.finish().await.unwrap();
    assert_eq!(ranking.best.len(), 4);
    server.until_idle().await;

    let mut refused = open(&server).await.unwrap();
    refused.send(&tile_batch(3)).await.unwrap();
    let error = refused.scores().await.unwrap_err();
    assert_reason(&error, "TOO_MANY_CONFIGS");
    server.until_idle().await;

    drop(open(&server).await.unwrap());
    server.until_idle().await;
    open(&server).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_at_work_gives_its_place_and_the_workers_back() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let mut stream = open(&server).await.unwrap();
    // This takes many times longer than the test waits.
    stream.send(&grid_configurations(400_000)).await.unwrap();
    server
        .until_metrics(|scrape| scrape.value("hlorank_queued_nodes", &[]) > 0.0)
        .await;
    drop(stream);
    let dropped = Instant::now();
    server.until_idle().await;
    let mut stream = open(&server).await.unwrap();
    stream.send(&tile_batch(10)).await.unwrap();
    stream.scores().await.unwrap();
    assert!(
        dropped.elapsed() < Duration::from_secs(5),
        "{:?}",
        dropped.elapsed()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_finishes_a_stream() {
    let server = TestServer::start().await;
    let mut stream = open(&server).await.unwrap();
    let (stopped, began) = (tokio::spawn(server.stop()), Instant::now());
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(!stopped.is_finished(), "the server waits for the stream");
    stream.send(&tile_batch(5)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 5);
    stopped.await.unwrap();
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "the drain time is 30 seconds"
    );
}
