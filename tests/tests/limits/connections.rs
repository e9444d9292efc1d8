//! Limits of connections, and of the calls of one connection.

use std::time::{Duration, Instant};

use hlorank_proto::v1::{
    ListModelsRequest, RankConfigsStreamRequest, cost_model_service_client::CostModelServiceClient,
    model_service_client::ModelServiceClient,
};
use hlorank_tests::{Scrape, TestServer};
use tokio::time::{sleep, timeout};
use tonic::{
    Status,
    transport::{Channel, Endpoint},
};

async fn list_models(channel: Channel) -> Result<usize, Status> {
    let answer = ModelServiceClient::new(channel).list_models(ListModelsRequest {}).await;
    answer.map(|answer| answer.into_inner().models.len())
}

fn open(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_connections", &[("listener", "calls")])
}

fn connections(scrape: &Scrape, result: &str) -> f64 {
    scrape.value("hlorank_connections_total", &[("listener", "calls"), ("result", result)])
}

#[tokio::test]
async fn a_connection_too_many_is_closed_at_once() {
    let server = TestServer::start_with(&["--max-connections=2"]).await;
    let (first, second) = (server.channel().await, server.channel().await);
    assert!(list_models(first.clone()).await.is_ok() && list_models(second.clone()).await.is_ok());
    let started = Instant::now();
    let channel = Endpoint::from_shared(server.endpoint().to_owned()).unwrap().connect().await;
    // The rejection may arrive while the client connects or with its first call.
    if let Ok(channel) = channel {
        assert!(list_models(channel).await.is_err());
    }
    assert!(started.elapsed() < Duration::from_secs(5));
    let scrape = server.scrape().await;
    assert!(connections(&scrape, "over_limit") >= 1.0);
    assert_eq!((open(&scrape), connections(&scrape, "accepted")), (2.0, 2.0));

    drop(second);
    while open(&server.scrape().await) > 1.0 {
        sleep(Duration::from_millis(5)).await;
    }
    assert!(list_models(server.channel().await).await.is_ok());
    assert!(list_models(first).await.is_ok());
}

#[tokio::test]
async fn calls_beyond_those_of_one_connection_wait() {
    let server = TestServer::start_with(&["--max-connection-calls=2"]).await;
    let channel = server.channel().await;
    // This call lets the client learn the server's settings.
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
