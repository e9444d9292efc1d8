//! Limits of connections, and of the calls of one connection.

use futures::channel::mpsc::{UnboundedSender, unbounded};
use hlorank_tests::prelude::*;
use tokio::net::TcpSocket;
use tonic::Streaming;

use crate::limits::request::{kernel, tiles};

/// Maximum number of open calls of a connection.
const CALLS: usize = 200;

async fn list_models(channel: Channel) -> Result<usize, Status> {
    let answer = ModelServiceClient::new(channel)
        .list_models(ListModelsRequest {})
        .await;
    answer.map(|answer| answer.into_inner().models.len())
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

/// A stream that is in flight until it is dropped.
struct HeldBytes(
    UnboundedSender<RankConfigsStreamRequest>,
    Streaming<RankConfigsStreamResponse>,
);

/// Makes a call over a connection that sends these messages and then waits.
async fn hold(channel: &Channel, messages: Vec<RankConfigsStreamRequest>) -> HeldBytes {
    let (requests, received) = unbounded();
    for message in messages {
        requests.unbounded_send(message).unwrap();
    }
    let answers = CostModelServiceClient::new(channel.clone())
        .rank_configs_stream(received)
        .await
        .unwrap();
    HeldBytes(requests, answers.into_inner())
}

impl HeldBytes {
    /// Starts a stream for which the server works.
    async fn working(channel: &Channel) -> Self {
        let mut held = hold(channel, vec![stream_start(kernel())]).await;
        held.1
            .message()
            .await
            .unwrap()
            .expect("the stream has started");
        held
    }

    async fn is_answered(&mut self) -> bool {
        self.0.unbounded_send(stream_batch(tiles(4))).unwrap();
        matches!(self.1.message().await, Ok(Some(_)))
    }
}

#[tokio::test]
async fn a_connection_too_many_is_closed_at_once_if_the_others_have_calls_in_flight() {
    let server = TestServer::start_with(&["--max-connections=2"]).await;
    let (first, second) = (server.channel().await, server.channel().await);
    let (mut one, two) = (
        HeldBytes::working(&first).await,
        HeldBytes::working(&second).await,
    );
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
    assert!(one.is_answered().await);

    drop((two, second));
    server.until_metrics(|scrape| open(scrape) == 1.0).await;
    assert!(list_models(server.channel().await).await.is_ok());
    assert!(one.is_answered().await);
}

#[tokio::test]
async fn connections_without_work_make_room_for_new_ones() {
    const CROWD: usize = 8;
    let server = TestServer::start_with(&[&format!("--max-connections={CROWD}")]).await;
    let busy = server.channel().await;
    let mut work = HeldBytes::working(&busy).await;
    let mut crowd = Vec::new();
    // These calls never send a message.
    for _ in 1..CROWD {
        let channel = server.channel().await;
        crowd.push((hold(&channel, vec![]).await, channel));
    }
    assert_eq!(open(&server.scrape().await), CROWD as f64);
    let idle = server.channel().await;
    let mut newcomers = Vec::new();
    for _ in 0..2 * CROWD {
        let channel = server.channel().await;
        assert!(
            list_models(channel.clone()).await.is_ok(),
            "a new client gets in"
        );
        newcomers.push(channel);
    }
    assert!(
        list_models(idle).await.is_ok(),
        "a client that was evicted connects again"
    );
    assert!(work.is_answered().await);
    for (call, _) in &mut crowd {
        assert!(
            call.1.message().await.is_err(),
            "calls that send no message do not keep their connection"
        );
    }
    let scrape = server
        .until_metrics(|scrape| open(scrape) <= CROWD as f64)
        .await;
    assert_eq!(connections(&scrape, "over_limit"), 0.0);
    assert!(connections(&scrape, "evicted") >= CROWD as f64);
}

#[tokio::test]
async fn a_flood_of_connections_does_not_end_those_of_another_address() {
    const MOST: usize = 8;
    let server = TestServer::start_with(&[&format!("--max-connections={MOST}")]).await;
    let quiet = server.channel().await;
    assert!(list_models(quiet.clone()).await.is_ok());
    let address = server.address().parse().unwrap();
    let mut flood = Vec::new();
    for _ in 0..4 * MOST {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 2], 0).into()).unwrap();
        flood.push(socket.connect(address).await.unwrap());
    }
    server
        .until_metrics(|scrape| connections(scrape, "evicted") >= (3 * MOST) as f64)
        .await;
    let accepted = connections(&server.scrape().await, "accepted");
    assert!(list_models(quiet).await.is_ok());
    let again = connections(&server.scrape().await, "accepted");
    assert_eq!(again, accepted, "the client kept its connection");
}

#[tokio::test]
async fn calls_beyond_those_of_one_connection_wait() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    // This call lets the client learn the server's settings.
    list_models(channel.clone()).await.unwrap();
    let stream = || {
        let (requests, received) = futures::channel::mpsc::unbounded::<RankConfigsStreamRequest>();
        let mut client = CostModelServiceClient::new(channel.clone());
        async move {
            (
                client.rank_configs_stream(received).await.unwrap(),
                requests,
            )
        }
    };
    let mut streams = Vec::new();
    for _ in 0..CALLS {
        streams.push(stream().await);
    }
    let mut waiting = tokio::spawn(list_models(channel.clone()));
    assert!(
        timeout(Duration::from_millis(300), &mut waiting)
            .await
            .is_err(),
        "there are as many as may be already"
    );
    assert!(
        list_models(server.channel().await).await.is_ok(),
        "other connections have calls of their own"
    );
    streams.pop();
    assert!(waiting.await.unwrap().is_ok());
}
