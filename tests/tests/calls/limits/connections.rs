//! Limits of connections, and of the calls of one connection.

use hlorank_tests::prelude::*;

use crate::{
    limits::request::{kernel, tiles},
    streaming::call::Stream,
};

/// Maximum number of open calls of a connection.
const CALLS: usize = 200;

async fn list_models(channel: Channel) -> Result<(), Status> {
    let mut models = ModelServiceClient::new(channel);
    models.list_models(ListModelsRequest {}).await.map(drop)
}

fn open(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_open_connections", &[("listener", "calls")])
}

fn connections(scrape: &Scrape, result: &str) -> f64 {
    scrape.value(
        "hlorank_connections_total",
        &[("listener", "calls"), ("result", result)],
    )
}

/// Asserts that the server still works for a stream.
async fn assert_answered(stream: &mut Stream) {
    stream.messages.send(stream_batch(tiles(4))).await.unwrap();
    assert!(stream.next().await.unwrap().is_some());
}

#[tokio::test]
async fn a_connection_too_many_is_closed_at_once_if_the_others_have_calls_in_flight() {
    let server = TestServer::start_with(&["--max-connections=2"]).await;
    let (first, second) = (server.channel().await, server.channel().await);
    let mut one = Stream::started(first, kernel()).await;
    let two = Stream::started(second.clone(), kernel()).await;
    let started = Instant::now();
    let channel = Endpoint::from_shared(server.endpoint().to_owned())
        .unwrap()
        .connect()
        .await;
    // The rejection may arrive while the client connects or with its first call.
    if let Ok(channel) = channel {
        assert!(list_models(channel).await.is_err());
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let scrape = server.scrape().await;
    assert!(connections(&scrape, "over_limit") >= 1.0);
    assert_eq!(
        (open(&scrape), connections(&scrape, "accepted")),
        (2.0, 2.0)
    );
    assert_answered(&mut one).await;

    drop((two, second));
    server.until_metrics(|scrape| open(scrape) == 1.0).await;
    list_models(server.channel().await).await.unwrap();
    assert_answered(&mut one).await;
}

#[tokio::test]
async fn connections_without_work_make_room_for_new_ones() {
    const CROWD: usize = 8;
    let server = TestServer::start_with(&[&format!("--max-connections={CROWD}")]).await;
    let mut work = Stream::started(server.channel().await, kernel()).await;
    let mut crowd = Vec::new();
    // These calls never send a message.
    for _ in 1..CROWD {
        let channel = server.channel().await;
        crowd.push((Stream::open(channel.clone()).await.unwrap(), channel));
    }
    assert_eq!(open(&server.scrape().await), CROWD as f64);
    let idle = server.channel().await;
    let mut newcomers = Vec::new();
    for _ in 0..2 * CROWD {
        let channel = server.channel().await;
        let listed = list_models(channel.clone()).await;
        listed.expect("a new client gets in");
        newcomers.push(channel);
    }
    let listed = list_models(idle).await;
    listed.expect("a client that was evicted connects again");
    assert_answered(&mut work).await;
    for (call, _) in &mut crowd {
        let ended = call.next().await;
        ended.expect_err("calls that send no message do not keep their connection");
    }
    let scrape = server
        .until_metrics(|scrape| open(scrape) <= CROWD as f64)
        .await;
    assert_eq!(connections(&scrape, "over_limit"), 0.0);
    assert!(connections(&scrape, "evicted") >= CROWD as f64);
}

#[tokio::test]
async fn calls_beyond_those_of_one_connection_wait() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    // This call lets the client learn the server's settings.
    list_models(channel.clone()).await.unwrap();
    let mut streams = Vec::new();
    for _ in 0..CALLS {
        streams.push(Stream::open(channel.clone()).await.unwrap());
    }
    let mut waiting = tokio::spawn(list_models(channel));
    assert!(
        timeout(Duration::from_millis(300), &mut waiting)
            .await
            .is_err(),
        "there are as many as may be already"
    );
    let elsewhere = list_models(server.channel().await).await;
    elsewhere.expect("other connections have calls of their own");
    streams.pop();
    waiting.await.unwrap().unwrap();
}
