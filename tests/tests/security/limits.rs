//! What one connection may take, and how many there may be.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use hlorank_proto::v1::{
    ListModelsRequest, RankConfigsStreamRequest, cost_model_service_client::CostModelServiceClient,
    model_service_client::ModelServiceClient,
};
use hlorank_tests::{
    Scrape, TestServer,
    security::{Authority, Files},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tonic::{Request, transport::Endpoint};

use crate::secured::{connections, list_models, until};

fn open(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_connections", &[("listener", "calls")])
}

#[tokio::test]
async fn a_connection_too_many_is_closed_at_once() {
    let server = TestServer::start_with(&["--max-connections=2"]).await;
    let (first, second) = (server.channel().await, server.channel().await);
    assert!(list_models(first.clone()).await.is_ok() && list_models(second.clone()).await.is_ok());
    let started = Instant::now();
    let channel = Endpoint::from_shared(server.endpoint().to_owned()).unwrap().connect().await;
    // It may have been told before it connects, or with its first call.
    if let Ok(channel) = channel {
        assert!(list_models(channel).await.is_err());
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let scrape = server.scrape().await;
    assert!(connections(&scrape, "over_limit") >= 1.0);
    assert_eq!((open(&scrape), connections(&scrape, "accepted")), (2.0, 2.0));

    drop(second);
    until(&server, |scrape| open(scrape) < 2.0).await;
    assert!(list_models(server.channel().await).await.is_ok());
    assert!(list_models(first).await.is_ok());
}

#[tokio::test]
async fn calls_beyond_those_of_one_connection_wait() {
    let server = TestServer::start_with(&["--max-connection-calls=2"]).await;
    let channel = server.channel().await;
    // So that the client knows the server's settings.
    list_models(channel.clone()).await.unwrap();
    let stream = || {
        let (requests, received) = futures::channel::mpsc::unbounded::<RankConfigsStreamRequest>();
        let mut client = CostModelServiceClient::new(channel.clone());
        async move { (client.rank_configs_stream(received).await.unwrap(), requests) }
    };
    let (one, two) = (stream().await, stream().await);
    let mut waiting = tokio::spawn(list_models(channel.clone()));
    assert!(timeout(Duration::from_millis(300), &mut waiting).await.is_err(), "there are two already");
    assert!(list_models(server.channel().await).await.is_ok(), "other connections have calls of their own");
    drop(one);
    assert!(waiting.await.unwrap().is_ok());
    drop(two);
}

#[tokio::test]
async fn headers_are_bounded() {
    let server = TestServer::start_with(&["--max-header-bytes=4096"]).await;
    let mut models = ModelServiceClient::new(server.channel().await);
    let mut with_header = async |bytes: usize| {
        let mut request = Request::new(ListModelsRequest {});
        request.metadata_mut().insert("x-long", "x".repeat(bytes).parse().unwrap());
        models.list_models(request).await
    };
    assert!(with_header(2048).await.is_ok());
    let refused = with_header(8192).await.unwrap_err();
    assert!(refused.message().contains("431"), "{refused:?}");
    assert!(with_header(2048).await.is_ok(), "the connection goes on");
}

/// Seconds until the server closes a connection on which a client says this and no more.
async fn seconds_until_closed(server: &TestServer, said: &[u8]) -> f64 {
    let mut stream = TcpStream::connect(server.endpoint().trim_start_matches("http://")).await.unwrap();
    stream.write_all(said).await.unwrap();
    let started = Instant::now();
    // The server's own settings, if any, and then the end.
    let _ = timeout(Duration::from_secs(30), stream.read_to_end(&mut Vec::new())).await.unwrap();
    started.elapsed().as_secs_f64()
}

#[tokio::test]
async fn silent_clients_are_let_go() {
    let files = Files::new();
    files.write_pair(&Authority::new().issue());
    let (plain, secured) = (TestServer::start().await, files.start().await);
    let closed = [
        seconds_until_closed(&plain, b""),
        seconds_until_closed(&plain, b"PRI * HTTP/2.0"),
        seconds_until_closed(&secured, b""),
        seconds_until_closed(&secured, &[0x16, 3, 1]),
    ];
    // All at once.
    let closed: Vec<f64> = stream::iter(closed.map(Box::pin)).buffered(4).collect().await;
    assert!(closed.iter().all(|seconds| (9.0..20.0).contains(seconds)), "{closed:?}");
    assert_eq!(connections(&secured.scrape().await, "handshake_timeout"), 2.0);
    until(&plain, |scrape| open(scrape) == 0.0).await;
}
