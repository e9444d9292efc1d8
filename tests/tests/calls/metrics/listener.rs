//! Clients that hold connections to the metrics listener.

use hlorank_tests::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Maximum number of connections to the metrics listener.
const MOST: f64 = 32.0;

fn open(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_open_connections", &[("listener", "metrics")])
}

/// Connects and sends these bytes.
async fn held(server: &TestServer, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(server.metrics_address()).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

#[tokio::test]
async fn idle_connections_do_not_keep_probes_and_scrapes_out() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    let mut crowd = Vec::new();
    for _ in 0..20 {
        crowd.push(held(&server, b"").await);
        // Half of a request, a whole one whose answer nobody reads, and one that says no more afterwards.
        crowd.push(
            held(
                &server,
                b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Half: ",
            )
            .await,
        );
        crowd.push(held(&server, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await);
        crowd.push(held(&server, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await);
        assert_eq!(
            http_get(address, "/readyz").await,
            (200, "ready\n".to_owned())
        );
    }
    // Those that are closing in favour of others are counted, too.
    let scrape = server.until_metrics(|scrape| open(scrape) <= MOST).await;
    let evicted = scrape.value(
        "hlorank_connections_total",
        &[("listener", "metrics"), ("result", "evicted")],
    );
    assert!(evicted >= 80.0 - MOST, "{evicted}");
    let mut answer = Vec::new();
    let _ = crowd[0].read_to_end(&mut answer).await;
    assert_eq!(answer, b"", "the first connection was closed");
}

#[tokio::test]
async fn headers_have_a_maximum_size() {
    let server = TestServer::start().await;
    let mut stream = held(
        &server,
        b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Long: ",
    )
    .await;
    // The server may close the connection before all is sent.
    let _ = stream.write_all(&vec![b'x'; 1 << 20]).await;
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    let text = String::from_utf8_lossy(&answer);
    assert!(
        text.is_empty() || text.starts_with("HTTP/1.1 431"),
        "{text}"
    );
    assert_eq!(http_get(server.metrics_address(), "/healthz").await.0, 200);
}

#[tokio::test]
async fn a_server_is_healthy_and_ready() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    assert_eq!(
        http_get(address, "/healthz").await,
        (200, "ok\n".to_owned())
    );
    assert_eq!(
        http_get(address, "/readyz").await,
        (200, "ready\n".to_owned())
    );
    assert_eq!(http_get(address, "/nothing").await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_finishes_its_calls_is_healthy_but_not_ready() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    let (client, graph) = (server.client().await, GraphHandle::features(&kernel_of(3)));
    let stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    let stopping = tokio::spawn(server.stop());
    while http_get(address, "/readyz").await.0 == 200 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (status, reason) = http_get(address, "/readyz").await;
    assert_eq!(
        (status, reason.as_str()),
        (503, "not ready: the server is stopping\n")
    );
    assert_eq!(http_get(address, "/healthz").await.0, 200);
    assert_eq!(
        http_get(address, "/metrics").await.0,
        200,
        "what happens to the last calls is seen"
    );
    drop(stream);
    stopping.await.unwrap();
}

#[tokio::test]
async fn metrics_can_be_off() {
    let server = TestServer::start_with(&["--metrics-listen=off"]).await;
    assert!(server.metrics().is_none());
    server.client().await.list_models().await.unwrap();
}
