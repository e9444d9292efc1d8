//! No call takes longer than its deadline allows.

use hlorank_tests::prelude::*;

use crate::client::{
    replica::calls,
    unanswering::{Gone, Silent},
};

/// Enough time for a server to start work, but less than [`MANY_TILES`] take.
const ALLOWED: Duration = Duration::from_millis(500);

/// Maximum wait for an immediate answer on a busy machine, less than [`MANY_TILES`] take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asserts that the call ended when its time was up, or slightly earlier because the server ended it, and not much
/// later.
fn assert_late<T: std::fmt::Debug>(answer: Result<T, ClientError>, since: Instant) {
    let (error, took) = (answer.unwrap_err(), since.elapsed());
    assert_eq!(error.code(), Some(Code::DeadlineExceeded), "{error}");
    says!(error.to_string(), "did not answer within 500ms");
    assert!((ALLOWED.mul_f64(0.9)..PATIENCE).contains(&took), "{took:?}");
}

fn kernel() -> GraphHandle {
    GraphHandle::features(&slow_kernel())
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up() {
    let silent = Silent::start().await;
    let client = Client::connect(&silent.endpoint, Connection::default())
        .await
        .unwrap();
    let (graph, tiles) = (kernel(), grid_configurations(5));
    let since = Instant::now();
    assert_late(
        client
            .rank(&RankRequest::new(&graph, &tiles).timeout(ALLOWED))
            .await,
        since,
    );
    let since = Instant::now();
    assert_late(
        client
            .rank_stream(&StreamRequest::new(&graph).timeout(ALLOWED))
            .await,
        since,
    );
}

#[tokio::test]
async fn calls_that_set_no_deadline_have_that_of_the_connection() {
    let silent = Silent::start().await;
    let connection = Connection {
        timeout: Some(ALLOWED),
        ..Connection::default()
    };
    let client = Client::connect(&silent.endpoint, connection).await.unwrap();
    let (graph, tiles, since) = (kernel(), grid_configurations(5), Instant::now());
    assert_late(client.rank(&RankRequest::new(&graph, &tiles)).await, since);
    let since = Instant::now();
    assert_late(client.put_graph(&graph).await, since);
    let since = Instant::now();
    assert_late(client.list_models().await, since);
}

#[tokio::test]
async fn a_connection_that_is_not_made_is_reported_with_its_address() {
    let gone = Gone::start().await;
    let connection = Connection {
        connect_timeout: ALLOWED,
        ..Connection::default()
    };
    let since = Instant::now();
    let error = Client::connect(&gone.endpoint, connection)
        .await
        .unwrap_err();
    assert!(
        (ALLOWED..PATIENCE).contains(&since.elapsed()),
        "{:?}",
        since.elapsed()
    );
    assert_eq!(error.code(), Some(Code::Unavailable));
    assert_eq!(
        error.to_string(),
        format!("no connection to {}", gone.endpoint)
    );
}

#[tokio::test]
async fn a_server_ends_a_call_at_the_deadline_of_its_client() {
    let server = TestServer::start().await;
    let (client, graph, large) = (
        server.client().await,
        kernel(),
        grid_configurations(MANY_TILES),
    );
    client.put_graph(&graph).await.unwrap();
    let since = Instant::now();
    assert_late(
        client
            .rank(&RankRequest::new(&graph, &large).timeout(ALLOWED))
            .await,
        since,
    );
    while calls(&server.scrape().await, "RankConfigs") < 1.0 {
        assert!(
            since.elapsed() < Duration::from_secs(20),
            "the call has not ended"
        );
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_stream_ends_at_its_deadline() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, kernel());
    client.put_graph(&graph).await.unwrap();
    let since = Instant::now();
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph).timeout(ALLOWED))
        .await
        .unwrap();
    stream.send(&grid_configurations(MANY_TILES)).await.unwrap();
    assert_late(stream.scores().await, since);
    let error = stream.finish().await.unwrap_err();
    assert_eq!(error.code(), Some(Code::DeadlineExceeded), "{error}");
}

#[tokio::test]
async fn a_stream_without_a_deadline_has_none() {
    let server = TestServer::start().await;
    let connection = Connection {
        timeout: Some(ALLOWED),
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    let graph = kernel();
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    tokio::time::sleep(2 * ALLOWED).await;
    stream.send(&grid_configurations(5)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 5);
}
