//! No call takes longer than its deadline allows.

use hlorank_tests::prelude::*;
use tokio::net::TcpListener;

use crate::client::unanswering::Gone;

/// Enough time for a server to start work, but less than [`MANY_TILES`] take.
const ALLOWED: Duration = Duration::from_millis(500);

/// Maximum wait for an immediate answer on a busy machine, less than [`MANY_TILES`] take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asserts that the call ends when its time is up, or slightly earlier because the server ends it, and not much later.
async fn assert_late<T: std::fmt::Debug>(call: impl Future<Output = Result<T, ClientError>>) {
    let since = Instant::now();
    let (error, took) = (call.await.unwrap_err(), since.elapsed());
    assert_eq!(error.code(), Some(Code::DeadlineExceeded), "{error}");
    says!(error.to_string(), "did not answer within 500ms");
    assert!((ALLOWED.mul_f64(0.9)..PATIENCE).contains(&took), "{took:?}");
}

fn kernel() -> GraphHandle {
    GraphHandle::features(&slow_kernel())
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_at_the_deadline_of_the_call_or_the_connection() {
    // It accepts connections, but nobody reads from them.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let (graph, tiles) = (kernel(), grid_configurations(5));
    let request = RankRequest::new(&graph, &tiles);
    let client = Client::connect(&endpoint, Connection::default()).await;
    let client = client.unwrap();
    let timely = RankRequest::new(&graph, &tiles).timeout(ALLOWED);
    assert_late(client.rank(&timely)).await;
    assert_late(client.rank_stream(&StreamRequest::new(&graph).timeout(ALLOWED))).await;

    let connection = Connection {
        timeout: Some(ALLOWED),
        ..Connection::default()
    };
    let client = Client::connect(&endpoint, connection).await.unwrap();
    assert_late(client.rank(&request)).await;
    assert_late(client.put_graph(&graph)).await;
    assert_late(client.list_models()).await;
}

#[tokio::test]
async fn a_connection_that_is_not_made_is_reported_with_its_address() {
    let gone = Gone::start().await;
    let connection = Connection {
        connect_timeout: ALLOWED,
        ..Connection::default()
    };
    let since = Instant::now();
    let error = Client::connect(&gone.endpoint, connection).await;
    let (error, took) = (error.unwrap_err(), since.elapsed());
    assert!((ALLOWED..PATIENCE).contains(&took), "{took:?}");
    assert_eq!(error.code(), Some(Code::Unavailable));
    let expected = format!("no connection to {}", gone.endpoint);
    assert_eq!(error.to_string(), expected);
}

#[tokio::test]
async fn a_stream_ends_at_its_deadline() {
    let server = TestServer::start().await;
    let (client, graph) = (server.client().await, kernel());
    client.put_graph(&graph).await.unwrap();
    let request = StreamRequest::new(&graph).timeout(ALLOWED);
    assert_late(async {
        let mut stream = client.rank_stream(&request).await.unwrap();
        stream.send(&grid_configurations(MANY_TILES)).await.unwrap();
        let scores = stream.scores().await;
        let ended = stream.finish().await.unwrap_err();
        assert_eq!(ended.code(), Some(Code::DeadlineExceeded), "{ended}");
        scores
    })
    .await;
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
    let request = StreamRequest::new(&graph);
    let mut stream = client.rank_stream(&request).await.unwrap();
    sleep(2 * ALLOWED).await;
    stream.send(&grid_configurations(5)).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best.len(), 5);
}
