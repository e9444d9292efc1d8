//! A call is retried only if a retry may help.

use hlorank_tests::prelude::*;

use crate::client::replica::{Replica, calls};

const ONE_REQUEST: [&str; 1] = ["--max-requests=1"];

fn overloaded(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_errors_total", &[("reason", "OVERLOADED")])
}

#[tokio::test]
async fn a_server_that_is_full_is_asked_again_when_it_says() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    let (client, graph, tiles) = (
        server.client().await,
        GraphHandle::features(&kernel_of(3)),
        grid_configurations(5),
    );
    let holding = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let request = RankRequest::new(&graph, &tiles);
    let (since, release) = (Instant::now(), Duration::from_millis(300));
    let (ranking, ()) = tokio::join!(client.rank(&request), async {
        tokio::time::sleep(release).await;
        drop(holding);
    });
    assert_eq!(ranking.unwrap().best.len(), 5);
    assert!(since.elapsed() > release);
    let refused = overloaded(&server.scrape().await);
    assert!((1.0..=4.0).contains(&refused), "{refused} times");
}

#[tokio::test]
async fn nothing_is_tried_again_past_the_deadline() {
    let server = TestServer::start_with(&ONE_REQUEST).await;
    let (client, graph, tiles) = (
        server.client().await,
        GraphHandle::features(&kernel_of(3)),
        grid_configurations(5),
    );
    let _holding = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    // Less time than the server asks to wait.
    let request = RankRequest::new(&graph, &tiles).timeout(Duration::from_millis(190));
    let error = client.rank(&request).await.unwrap_err();
    assert_eq!(error.code(), Some(Code::ResourceExhausted), "{error}");
    assert_eq!(overloaded(&server.scrape().await), 1.0);
}

#[tokio::test]
async fn what_is_wrong_is_not_tried_again() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    let error = client
        .rank(&RankRequest::new(&graph, &grid_configurations(0)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Some(Code::InvalidArgument), "{error}");
    assert_eq!(calls(&server.scrape().await, "RankConfigs"), 1.0);
}

#[tokio::test]
async fn a_request_that_no_message_holds_is_not_sent() {
    let server = TestServer::start().await;
    let connection = Connection {
        message_bytes: 1000,
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    let graph = GraphHandle::features(&kernel_of(3));
    let error = client.put_graph(&graph).await.unwrap_err();
    says!(error.to_string(), "a message may have at most 1000");
    assert_eq!(calls(&server.scrape().await, "PutGraph"), 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_restarts_is_waited_for() {
    let mut server = Replica::start().await;
    let connection = Connection {
        retries: 8,
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    let (graph, tiles) = (GraphHandle::features(&kernel_of(3)), grid_configurations(5));
    let request = RankRequest::new(&graph, &tiles);
    let first = client.rank(&request).await.unwrap();
    server.kill().await.unwrap();
    let (again, server) = tokio::join!(client.rank(&request), server.restart());
    assert_eq!(again.unwrap().best, first.best);
    // First by hash, which the new server does not know, and then whole.
    assert_eq!(server.ranked().await, 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stays_away_is_reported_with_its_address() {
    let mut server = Replica::start().await;
    let connection = Connection {
        retries: 1,
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    server.kill().await.unwrap();
    let error = client.list_models().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::Unavailable), "{error}");
    assert_eq!(
        error.to_string(),
        format!("no connection to {}", server.endpoint())
    );
}
