//! TLS, and mutual TLS.

use futures::future::join_all;
use hlorank_tests::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::security::secured::{connect, connections, list_models, trusting};

#[tokio::test]
async fn calls_go_over_tls_alone() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let files = Files::with_pair(&authority.issue());
    let server = files.start_with(&["--admin-listen=127.0.0.1:0"]).await;

    for endpoint in [
        server.endpoint().to_owned(),
        server.admin_endpoint().unwrap(),
    ] {
        let channel = connect(&endpoint, trusting(&[&authority])).await.unwrap();
        assert!(list_models(channel).await.unwrap() > 0);
        assert!(
            connect(&endpoint, trusting(&[&stranger])).await.is_err(),
            "an authority that is not trusted"
        );
    }
    let plain = list_models(server.channel().await).await;
    assert!(matches!(
        plain.unwrap_err().code(),
        Code::Unavailable | Code::Unknown | Code::Internal
    ));
    server
        .until_metrics(|scrape| connections(scrape, "handshake_failed") >= 2.0)
        .await;
    let (status, _) = http_get(server.metrics_address(), "/healthz").await;
    assert_eq!(status, 200, "operators ask without TLS");
}

#[tokio::test]
async fn mutual_tls_takes_clients_of_its_authority_alone() {
    let (authority, clients, stranger) = (Authority::new(), Authority::new(), Authority::new());
    let files = Files::with_pair(&authority.issue());
    files.write("ca.crt", &clients.pem);
    let server = files.start_with(&["--admin-listen=127.0.0.1:0"]).await;

    let with = |pair: Pair| trusting(&[&authority]).identity(pair.identity());
    for (client, is_known) in [
        (with(clients.issue()), true),
        (trusting(&[&authority]), false),
        (with(stranger.issue()), false),
        (with(clients.issue_until(2001)), false),
    ] {
        for endpoint in [server.endpoint(), &server.admin_endpoint().unwrap()] {
            // With TLS 1.3 a client learns of its rejection when it reads.
            let is_answered = match connect(endpoint, client.clone()).await {
                Ok(channel) => list_models(channel).await.is_ok(),
                Err(_) => false,
            };
            assert_eq!(is_answered, is_known, "{endpoint}: {client:?}");
        }
    }
    server
        .until_metrics(|scrape| connections(scrape, "handshake_failed") >= 3.0)
        .await;
    let scrape = server.scrape().await;
    assert_eq!(connections(&scrape, "accepted"), 1.0);
}

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
    let files = Files::with_pair(&Authority::new().issue());
    let (plain, secured) = (TestServer::start().await, files.start().await);
    // All connections are open at the same time.
    let closed = join_all([
        seconds_until_closed(&plain, b""),
        seconds_until_closed(&plain, b"PRI * HTTP/2.0"),
        seconds_until_closed(&secured, b""),
        seconds_until_closed(&secured, &[0x16, 3, 1]),
    ])
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
