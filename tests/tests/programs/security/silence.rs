//! Clients that send nothing.

use futures::{StreamExt, stream};
use hlorank_tests::prelude::*;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use crate::security::secured::connections;

/// Returns the seconds until the server closes a connection on which a client sends only these bytes.
async fn seconds_until_closed(server: &TestServer, said: &[u8]) -> f64 {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    stream.write_all(said).await.unwrap();
    let started = Instant::now();
    // Reads the server's own settings, if any, up to the end of the connection.
    let _ = timeout(Duration::from_secs(30), stream.read_to_end(&mut Vec::new()))
        .await
        .unwrap();
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
    // All connections are open at the same time.
    let closed: Vec<f64> = stream::iter(closed.map(Box::pin))
        .buffered(4)
        .collect()
        .await;
    assert!(
        closed.iter().all(|seconds| (9.0..30.0).contains(seconds)),
        "{closed:?}"
    );
    assert_eq!(
        connections(&secured.scrape().await, "handshake_timeout"),
        2.0
    );
    plain
        .until_metrics(|scrape| {
            scrape.value("hlorank_open_connections", &[("listener", "calls")]) == 0.0
        })
        .await;
}
