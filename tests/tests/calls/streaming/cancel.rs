//! A stream counts as a request in progress until it ends, in whatever way it ends.

use hlorank_client::RankStream;
use hlorank_tests::prelude::*;

use crate::streaming::call::{Stream, kernel, tile_batch, tiles};

const ONE_REQUEST: [&str; 1] = ["--max-requests=1"];

async fn open(server: &TestServer) -> Result<RankStream, ClientError> {
    let graph = GraphHandle::hlo_module(two_dots(), Task::Tile, vec![]);
    // A client that retries would hide for half a minute that there is no place.
    let client = server.client_without_retries().await;
    client.rank_stream(&StreamRequest::new(&graph)).await
}

/// Waits until the server accepts another request.
async fn until_free(server: &TestServer) -> RankStream {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match open(server).await {
            Ok(stream) => return stream,
            Err(error) => assert!(Instant::now() < deadline, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn an_open_stream_holds_its_place() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    let mut stream = open(&server).await.unwrap();
    let error = open(&server).await.unwrap_err();
    assert_reason(&error, "OVERLOADED");
    stream.send(&tile_batch(3)).await.unwrap();
    stream.finish().await.unwrap();
    until_free(&server).await;
}

#[tokio::test]
async fn an_idle_stream_that_is_dropped_gives_its_place_back() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    drop(open(&server).await.unwrap());
    until_free(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_dropped_at_work_gives_its_place_and_the_workers_back() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    let mut stream = open(&server).await.unwrap();
    // This takes many times longer than the test waits.
    stream.send(&grid_configurations(400_000)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    drop(stream);
    let dropped = Instant::now();
    let mut stream = until_free(&server).await;
    stream.send(&tile_batch(10)).await.unwrap();
    stream.scores().await.unwrap();
    assert!(
        dropped.elapsed() < Duration::from_secs(5),
        "{:?}",
        dropped.elapsed()
    );
}

#[tokio::test]
async fn a_connection_that_breaks_gives_the_place_back() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    let elsewhere = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let endpoint = server.endpoint().to_owned();
    let connected = elsewhere.spawn(async move {
        let channel = tonic::transport::Endpoint::from_shared(endpoint)
            .unwrap()
            .connect()
            .await
            .unwrap();
        let stream = Stream::started(channel, kernel()).await;
        stream.messages.send(stream_batch(tiles(10))).await.unwrap();
        stream
    });
    let stream = connected.await.unwrap();
    assert!(open(&server).await.is_err());
    // Closes the socket without ending the stream.
    elsewhere.shutdown_background();
    until_free(&server).await;
    drop(stream);
}

#[tokio::test]
async fn a_refused_stream_gives_its_place_back() {
    let server = TestServer::start_with(&["--max-requests=1", "--max-configs=2"]).await;
    let mut stream = open(&server).await.unwrap();
    stream.send(&tile_batch(3)).await.unwrap();
    stream.scores().await.unwrap_err();
    until_free(&server).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_stopping_server_waits_no_longer_than_the_drain_time_for_an_idle_stream() {
    let server = TestServer::start_with(&["--drain-seconds=0.5"]).await;
    let _idle = open(&server).await.unwrap();
    // The default drain time is half a minute.
    let began = Instant::now();
    server.stop().await;
    assert!(
        (0.5..10.0).contains(&began.elapsed().as_secs_f64()),
        "{:?}",
        began.elapsed()
    );
}
