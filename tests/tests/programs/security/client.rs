//! The client library over TLS and with tokens.

use std::{error::Error, iter::successors};

use hlorank_client::{AdminClient, Identity};
use hlorank_tests::prelude::*;
use tokio::net::TcpListener;

const ADMIN: &str = "--admin-listen=127.0.0.1:0";

/// Returns a connection that trusts an authority, without retries.
fn trusting(authority: &Authority) -> Connection {
    Connection {
        authorities: Some(authority.pem.clone()),
        retries: 0,
        ..Connection::default()
    }
}

/// Returns such a connection that also presents a certificate.
fn showing(authority: &Authority, pair: Pair) -> Connection {
    let Pair { certificate, key } = pair;
    Connection {
        identity: Some(Identity { certificate, key }),
        ..trusting(authority)
    }
}

fn with_token(authority: &Authority, token: &str) -> Connection {
    Connection {
        token: Some(token.parse().unwrap()),
        ..trusting(authority)
    }
}

async fn list_models(server: &TestServer, connection: &Connection) -> Result<usize, ClientError> {
    let client = Client::connect(&over_tls(server.endpoint()), connection.clone()).await?;
    Ok(client.list_models().await?.len())
}

async fn reload(server: &TestServer, connection: &Connection) -> Result<usize, ClientError> {
    let endpoint = over_tls(&server.admin_endpoint().unwrap());
    Ok(AdminClient::connect(&endpoint, connection.clone())
        .await?
        .reload()
        .await?
        .len())
}

/// Asserts that both kinds of calls are rejected for the same reason.
async fn refusals(server: &TestServer, connection: &Connection) -> [ClientError; 2] {
    [
        list_models(server, connection).await.unwrap_err(),
        reload(server, connection).await.unwrap_err(),
    ]
}

/// Returns the error of a connection that could not be opened.
fn cause(error: &ClientError) -> String {
    assert!(matches!(error, ClientError::Connect { .. }), "{error:?}");
    assert_eq!(error.code(), Some(Code::Unavailable));
    let causes = successors(error.source(), |cause| (**cause).source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}

#[tokio::test]
async fn every_call_goes_over_tls() {
    let authority = Authority::new();
    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write("tokens", &token_line("both", "admin,read", "secret"));
    let artifacts = Artifacts::copy();
    let server = files.start_with(&[ADMIN, &artifacts.flag()]).await;
    let connection = with_token(&authority, "secret");
    let client = Client::connect(&over_tls(server.endpoint()), connection.clone())
        .await
        .unwrap();
    let (graph, tiles) = (
        GraphHandle::features(&kernel_of(5)),
        grid_configurations(20),
    );
    client.put_graph(&graph).await.unwrap();
    let ranking = client
        .rank(&RankRequest::new(&graph, &tiles))
        .await
        .unwrap();
    let mut stream = client
        .rank_stream(&StreamRequest::new(&graph))
        .await
        .unwrap();
    stream.send(&tiles).await.unwrap();
    assert_eq!(stream.finish().await.unwrap().best, ranking.best);
    let model = &client.list_models().await.unwrap()[0];
    assert_eq!(
        client
            .get_model(&model.name, Some(model.version))
            .await
            .unwrap()
            .digest,
        model.digest
    );

    let admin = AdminClient::connect(&over_tls(&server.admin_endpoint().unwrap()), connection)
        .await
        .unwrap();
    let versions = [
        admin.reload().await,
        admin.set_canary(&model.name, model.version, 0).await,
        admin.pin(&model.name, model.version).await,
        admin.unpin(&model.name).await,
    ];
    for versions in versions {
        assert!(
            versions
                .unwrap()
                .iter()
                .any(|version| version.name == model.name)
        );
    }
    let error = admin.rollback("another").await.unwrap_err();
    assert_reason(&error, "MODEL_NOT_FOUND");
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_not_called() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let files = Files::new();
    files.write_pair(&authority.issue());
    let server = files.start_with(&[ADMIN]).await;
    assert!(list_models(&server, &trusting(&authority)).await.unwrap() > 0);
    for error in refusals(&server, &trusting(&stranger)).await {
        says!(cause(&error), "the server's certificate is not trusted");
    }
    // The system's certificate store does not trust the authority.
    for error in refusals(&server, &Connection::default()).await {
        assert!(
            matches!(error, ClientError::Connect { .. } | ClientError::Tls { .. }),
            "{error:?}"
        );
    }
    let both = Connection {
        authorities: Some(stranger.pem + &authority.pem),
        ..Connection::default()
    };
    assert!(list_models(&server, &both).await.unwrap() > 0);
}

#[tokio::test]
async fn a_server_of_another_name_is_not_called() {
    let authority = Authority::new();
    let files = Files::new();
    files.write_pair(&authority.issue_elsewhere());
    let server = files.start_with(&[ADMIN]).await;
    for error in refusals(&server, &trusting(&authority)).await {
        says!(cause(&error), "not for this host but for ranker.example");
    }
}

#[tokio::test]
async fn mutual_tls_takes_clients_that_show_a_certificate() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write("ca.crt", &clients.pem);
    let server = files.start_with(&[ADMIN]).await;
    let known = showing(&authority, clients.issue());
    assert!(list_models(&server, &known).await.unwrap() > 0);
    assert!(reload(&server, &known).await.unwrap() > 0);
    for unknown in [trusting(&authority), showing(&authority, authority.issue())] {
        for error in refusals(&server, &unknown).await {
            assert!(!cause(&error).is_empty());
        }
    }
}

#[tokio::test]
async fn a_call_brings_its_token() {
    let authority = Authority::new();
    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write(
        "tokens",
        &[
            token_line("ci", "read", "r"),
            token_line("operator", "admin", "a"),
        ]
        .concat(),
    );
    let server = files.start_with(&[ADMIN]).await;
    for (connection, reason) in [
        (trusting(&authority), "TOKEN_MISSING"),
        (with_token(&authority, "another"), "TOKEN_UNKNOWN"),
    ] {
        for error in refusals(&server, &connection).await {
            assert_eq!(error.code(), Some(Code::Unauthenticated));
            assert_eq!(error.refusal().unwrap().reason(), Some(reason));
            assert!(
                !format!("{error} {error:?}").contains("another"),
                "{error:?}"
            );
        }
    }
    let (read, admin) = (with_token(&authority, "r"), with_token(&authority, "a"));
    assert!(list_models(&server, &read).await.unwrap() > 0);
    assert!(reload(&server, &admin).await.unwrap() > 0);
    for error in [
        list_models(&server, &admin).await,
        reload(&server, &read).await,
    ] {
        assert_eq!(error.unwrap_err().code(), Some(Code::PermissionDenied));
    }
}

#[tokio::test]
async fn a_token_needs_no_tls() {
    let files = Files::new();
    files.write("tokens", &token_line("ci", "read", "r"));
    let server = files.start().await;
    let connection = Connection {
        token: Some("r".parse().unwrap()),
        ..Connection::default()
    };
    let client = server.client_with(connection).await;
    assert!(!client.list_models().await.unwrap().is_empty());
    assert!(!format!("{client:?}").contains("Bearer"), "{client:?}");
}

#[tokio::test]
async fn every_graph_has_its_replica_over_tls() {
    let authority = Authority::new();
    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write("tokens", &token_line("ci", "read", "r"));
    let replicas = [files.start().await, files.start().await];
    let mut listed = replicas
        .each_ref()
        .map(|replica| over_tls(replica.endpoint()));
    let graphs: Vec<_> = (1..=20)
        .map(|nodes| GraphHandle::features(&kernel_of(nodes)))
        .collect();
    let tiles = grid_configurations(5);
    let mut shares = vec![];
    for _ in 0..2 {
        let client = Client::connect_replicas(&listed, with_token(&authority, "r"))
            .await
            .unwrap();
        for graph in &graphs {
            client.rank(&RankRequest::new(graph, &tiles)).await.unwrap();
        }
        let mut share = vec![];
        for replica in &replicas {
            let read = [("cache", "graphs_by_source"), ("result", "miss")];
            share.push(
                replica
                    .scrape()
                    .await
                    .value("hlorank_cache_requests_total", &read),
            );
        }
        shares.push(share);
        listed.reverse();
    }
    assert!(
        shares[0].iter().all(|&graphs| graphs > 0.0) && shares[0].iter().sum::<f64>() == 20.0,
        "{shares:?}"
    );
    assert_eq!(shares[0], shares[1], "no graph went to another replica");
}

#[tokio::test]
async fn tls_and_no_tls_do_not_meet() {
    let authority = Authority::new();
    let files = Files::new();
    files.write_pair(&authority.issue());
    let secured = files.start_with(&[ADMIN]).await;
    let plain = TestServer::start().await;
    let error = list_models(&plain, &trusting(&authority))
        .await
        .unwrap_err();
    says!(
        cause(&error),
        "does not use TLS here; use an address at http://"
    );

    // It is no use to repeat such a call.
    let client = Client::connect(secured.endpoint(), Connection::default()).await;
    let error = client.unwrap().list_models().await.unwrap_err();
    assert!(matches!(error, ClientError::SpeaksTls { .. }), "{error:?}");
    let endpoint = secured.admin_endpoint().unwrap();
    let admin = AdminClient::connect(&endpoint, Connection::default()).await;
    let error = admin.unwrap().reload().await.unwrap_err();
    assert!(matches!(error, ClientError::SpeaksTls { .. }), "{error:?}");

    for connection in [trusting(&authority), showing(&authority, authority.issue())] {
        let error = Client::connect(plain.endpoint(), connection)
            .await
            .unwrap_err();
        let expected = format!(
            "certificates were given, but {} does not use TLS;",
            plain.endpoint()
        );
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}

/// Returns the message of an error and its causes, which must not have the words of a library.
fn in_our_words(error: &ClientError) -> String {
    let causes = successors(Some(error as &dyn Error), |cause| (*cause).source());
    let message: Vec<String> = causes.map(ToString::to_string).collect();
    let message = message.join(": ");
    let is_type = |word: &str| {
        let inner = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let capitals = inner
            .matches(|letter: char| letter.is_ascii_uppercase())
            .count();
        let is_mixed = inner.contains(|letter: char| letter.is_ascii_lowercase());
        capitals > 1 && is_mixed && !inner.contains('_') && !["HTTP/2", "gRPC"].contains(&inner)
    };
    let words = message
        .split_whitespace()
        .filter(|word| !word.contains("://"));
    let types: Vec<&str> = words
        .filter(|word| is_type(word) && *word != "subjectAltName")
        .collect();
    assert_eq!(types, [""; 0], "{message}");
    for word in [
        "os error",
        "transport error",
        "fatal alert",
        "peer",
        "rustls",
        "h2 ",
        "hyper",
    ] {
        assert!(!message.contains(word), "{message}");
    }
    message
}

/// Starts a server with a pair, and returns the error of a client's first call.
async fn error_with(pair: &Pair, connection: &Connection) -> ClientError {
    let files = Files::new();
    files.write_pair(pair);
    let server = files.start().await;
    list_models(&server, connection).await.unwrap_err()
}

#[tokio::test]
async fn what_goes_wrong_with_a_connection_is_told_in_our_own_words() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let expired = authority.issue_until(2001);
    let trusted = trusting(&authority);
    for (pair, connection, expected) in [
        (
            authority.issue(),
            trusting(&stranger),
            "is not trusted; give its authority with --ca",
        ),
        (expired, trusted.clone(), "has expired"),
        (
            authority.issue_elsewhere(),
            trusted.clone(),
            "not for this host but for ranker.example",
        ),
        (
            authority.own(),
            trusted.clone(),
            "that of an authority, which no server may show",
        ),
    ] {
        let error = error_with(&pair, &connection).await;
        says!(in_our_words(&error), expected);
    }

    let files = Files::new();
    files.write_pair(&authority.issue());
    files.write("ca.crt", &authority.pem);
    let server = files.start().await;
    let error = list_models(&server, &trusted).await.unwrap_err();
    says!(in_our_words(&error), "asks for a certificate of the client");
    let unknown = showing(&authority, stranger.issue());
    let error = list_models(&server, &unknown).await.unwrap_err();
    says!(
        in_our_words(&error),
        "does not trust the client's certificate"
    );

    for (endpoint, expected) in [
        ("http://127.0.0.1:1", "nothing listens at this address"),
        ("http://no-such-host.invalid:7070", "the host is unknown"),
        (
            "http://127.0.0.1:99999",
            "the port '99999' is not a number from 1 to 65535",
        ),
    ] {
        let error = Client::connect(endpoint, Connection::default())
            .await
            .unwrap_err();
        says!(in_our_words(&error), expected);
    }

    let plain = TestServer::start().await;
    let small = Connection {
        message_bytes: 100,
        ..Connection::default()
    };
    let client = Client::connect(plain.endpoint(), small).await.unwrap();
    let error = client.list_models().await.unwrap_err();
    says!(
        in_our_words(&error),
        "longer than the 100 bytes that this client takes"
    );

    let Pair { certificate, key } = authority.issue();
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (certificate, key, expected) in [
        (
            certificate.clone(),
            authority.issue().key,
            "not that of the client's certificate",
        ),
        (
            certificate.clone(),
            certificate.clone(),
            "not a private key in PEM",
        ),
        (
            certificate.clone(),
            encrypted.to_owned(),
            "the key is encrypted",
        ),
        (
            "text".to_owned(),
            key.clone(),
            "the client's certificate is not in PEM",
        ),
    ] {
        let connection = showing(&authority, Pair { certificate, key });
        let error = Client::connect("https://127.0.0.1:1", connection)
            .await
            .unwrap_err();
        says!(in_our_words(&error), expected);
    }
}

#[tokio::test]
async fn a_handshake_takes_no_longer_than_a_connection_may() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("https://{}", listener.local_addr().unwrap());
    let connect_timeout = Duration::from_millis(200);
    let connection = Connection {
        connect_timeout,
        ..trusting(&Authority::new())
    };
    let since = Instant::now();
    let error = Client::connect(&endpoint, connection).await.unwrap_err();
    says!(cause(&error), "did not accept the connection in time");
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
}

#[tokio::test]
async fn what_makes_no_tls_is_reported_before_a_connection_is_made() {
    let authority = Authority::new();
    let (one, other) = (authority.issue(), authority.issue());
    let connect = async |connection: Connection| {
        let error = Client::connect("https://127.0.0.1:1", connection)
            .await
            .unwrap_err();
        assert!(
            matches!(error, ClientError::Tls { .. }) && error.code().is_none(),
            "{error:?}"
        );
        error.source().unwrap().to_string()
    };
    let no_authority = Connection {
        authorities: Some(one.key.clone()),
        ..Connection::default()
    };
    assert_eq!(
        connect(no_authority).await,
        "the authorities contain no certificate in PEM"
    );
    let mixed = Pair {
        certificate: one.certificate,
        key: other.key,
    };
    connect(showing(&authority, mixed)).await;
    let no_key = Pair {
        certificate: other.certificate.clone(),
        key: other.certificate,
    };
    connect(showing(&authority, no_key)).await;
}
