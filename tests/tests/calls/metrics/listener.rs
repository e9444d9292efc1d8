//! Clients that hold connections to the metrics listener.

use hlorank_tests::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::metrics::kernel;

/// Maximum number of connections to the metrics listener.
const MOST: f64 = 32.0;

/// The beginning of a request.
const HEAD: &str = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";

fn open(scrape: &Scrape) -> f64 {
    scrape.value("hlorank_open_connections", &[("listener", "metrics")])
}

/// Connects and sends this text.
async fn held(server: &TestServer, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(server.metrics_address()).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn idle_connections_do_not_keep_probes_and_scrapes_out() {
    let server = TestServer::start().await;
    let half = format!("{HEAD}X-Half: ");
    let unread = format!("{HEAD}\r\n");
    let probe = unread.replace("metrics", "healthz");
    let mut crowd = Vec::new();
    for _ in 0..20 {
        for text in ["", &half, &unread, &probe] {
            crowd.push(held(&server, text).await);
        }
        let ready = http_get(server.metrics_address(), "/readyz").await;
        assert_eq!(ready, (200, "ready\n".to_owned()));
    }
    // Those that are closing in favour of others are counted, too.
    let scrape = server.until_metrics(|scrape| open(scrape) <= MOST).await;
    let evicted = [("listener", "metrics"), ("result", "evicted")];
    let evicted = scrape.value("hlorank_connections_total", &evicted);
    assert!(evicted >= 80.0 - MOST, "{evicted}");
    let mut answer = Vec::new();
    let _ = crowd[0].read_to_end(&mut answer).await;
    assert_eq!(answer, b"", "the first connection was closed");
}

#[tokio::test]
async fn headers_have_a_maximum_size() {
    let server = TestServer::start().await;
    let mut stream = held(&server, &format!("{HEAD}X-Long: ")).await;
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

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_finishes_its_calls_is_healthy_but_not_ready() {
    let server = TestServer::start().await;
    let address = server.metrics_address();
    let answer = async |path: &str| {
        let (status, text) = http_get(address, path).await;
        format!("{status} {text}")
    };
    assert_eq!(answer("/healthz").await, "200 ok\n");
    assert_eq!(answer("/readyz").await, "200 ready\n");
    assert!(answer("/nothing").await.starts_with("404 "));
    let (client, graph) = (server.client().await, kernel());
    let stream = client.rank_stream(&StreamRequest::new(&graph)).await;
    let stream = stream.unwrap();
    let stopping = tokio::spawn(server.stop());
    while answer("/readyz").await == "200 ready\n" {
        sleep(Duration::from_millis(5)).await;
    }
    let unready = "503 not ready: the server is stopping\n";
    assert_eq!(answer("/readyz").await, unready);
    assert_eq!(answer("/healthz").await, "200 ok\n");
    let metrics = answer("/metrics").await;
    assert!(
        metrics.starts_with("200 "),
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
