//! TLS, and mutual TLS.

use futures::{StreamExt, stream};
use hlorank_tests::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::security::secured::{connect, connections, list_models, trusting};

#[tokio::test]
async fn calls_go_over_tls_alone() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let files = Files::new();
    files.write_pair(&authority.issue());
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
    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write("ca.crt", &clients.pem);
    let server = files.start().await;

    let known = trusting(&[&authority]).identity(clients.issue().identity());
    assert!(
        list_models(connect(server.endpoint(), known).await.unwrap())
            .await
            .unwrap()
            > 0
    );
    let nobody = trusting(&[&authority]);
    let unknown = trusting(&[&authority]).identity(stranger.issue().identity());
    let expired = trusting(&[&authority]).identity(clients.issue_until(2001).identity());
    for client in [nobody, unknown, expired] {
        // With TLS 1.3 a client learns of its rejection when it reads.
        let called = match connect(server.endpoint(), client).await {
            Ok(channel) => list_models(channel).await.is_ok(),
            Err(_) => false,
        };
        assert!(!called);
    }
    server
        .until_metrics(|scrape| connections(scrape, "handshake_failed") >= 3.0)
        .await;
    let scrape = server.scrape().await;
    assert_eq!(connections(&scrape, "accepted"), 1.0);
}

/// Returns the error of a server that does not start.
async fn refusal(files: &Files) -> String {
    let flags = files.flags();
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    match TestServer::try_start_with(&flags).await {
        Ok(_) => panic!("the server started"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn files_that_make_no_tls_are_reported_at_the_start() {
    let authority = Authority::new();
    let (one, other) = (authority.issue(), authority.issue());
    let files = Files::new();
    files.write("tls.crt", &one.certificate);
    says!(refusal(&files).await, "--tls-certificate needs --tls-key");
    files.write("tls.key", &other.key);
    says!(refusal(&files).await, "is not that of the certificate in");
    files.write("tls.key", &one.key);
    files.write("tokens", "ci read secret");
    let refused = refusal(&files).await;
    assert!(
        refused.contains("line 1 of") && !refused.contains("secret"),
        "{refused}"
    );
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
