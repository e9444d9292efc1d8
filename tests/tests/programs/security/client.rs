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

async fn list_models(server: &TestServer, connection: &Connection) -> Result<usize, ClientError> {
    let client = Client::connect(&over_tls(server.endpoint()), connection.clone()).await?;
    Ok(client.list_models().await?.len())
}

#[tokio::test]
async fn every_call_goes_over_mutual_tls_with_a_token() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let files = Files::with_pair(&authority.issue());
    files.write("ca.crt", &clients.pem);
    files.write("tokens", &token_line("both", "admin,read", "secret"));
    let artifacts = Artifacts::copy();
    let server = files.start_with(&[ADMIN, &artifacts.flag()]).await;
    let connection = Connection {
        token: Some("secret".parse().unwrap()),
        ..showing(&authority, clients.issue())
    };
    let client = Client::connect(&over_tls(server.endpoint()), connection.clone())
        .await
        .unwrap();
    let graph = GraphHandle::features(&kernel_of(5));
    let tiles = grid_configurations(20);
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
    let same = client.get_model(&model.name, Some(model.version)).await;
    assert_eq!(same.unwrap().digest, model.digest);

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
        let mut versions = versions.unwrap().into_iter();
        assert!(versions.any(|version| version.name == model.name));
    }
    let error = admin.rollback("another").await.unwrap_err();
    assert_reason(&error, "MODEL_NOT_FOUND");
}

#[tokio::test]
async fn a_server_is_called_if_a_given_authority_issued_its_certificate() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let files = Files::with_pair(&authority.issue());
    let server = files.start_with(&[ADMIN]).await;
    let admin = over_tls(&server.admin_endpoint().unwrap());
    let error = AdminClient::connect(&admin, trusting(&stranger))
        .await
        .unwrap_err();
    says!(
        in_our_words(&error),
        "the server's certificate is not trusted"
    );
    // The system's certificate store does not trust the authority.
    let error = list_models(&server, &Connection::default())
        .await
        .unwrap_err();
    assert!(
        matches!(error, ClientError::Connect { .. } | ClientError::Tls { .. }),
        "{error:?}"
    );
    let both = Connection {
        authorities: Some(stranger.pem + &authority.pem),
        ..Connection::default()
    };
    assert!(list_models(&server, &both).await.unwrap() > 0);
}

#[tokio::test]
async fn tls_and_no_tls_do_not_meet() {
    let authority = Authority::new();
    let files = Files::with_pair(&authority.issue());
    let secured = files.start_with(&[ADMIN]).await;
    let plain = TestServer::start().await;
    let error = list_models(&plain, &trusting(&authority))
        .await
        .unwrap_err();
    says!(
        in_our_words(&error),
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

    let endpoint = plain.endpoint();
    let error = Client::connect(endpoint, trusting(&authority))
        .await
        .unwrap_err();
    says!(
        in_our_words(&error),
        format!("certificates were given, but {endpoint} does not use TLS;")
    );
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

#[tokio::test]
async fn what_goes_wrong_with_a_connection_is_told_in_our_own_words() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let trusted = trusting(&authority);
    for (pair, client_authority, connection, expected) in [
        (
            authority.issue(),
            None,
            trusting(&stranger),
            "is not trusted; give its authority with --ca",
        ),
        (
            authority.issue_until(2001),
            None,
            trusted.clone(),
            "has expired",
        ),
        (
            authority.issue_elsewhere(),
            None,
            trusted.clone(),
            "not for this host but for ranker.example",
        ),
        (
            authority.own(),
            None,
            trusted.clone(),
            "that of an authority, which no server may show",
        ),
        (
            authority.issue(),
            Some(&authority),
            trusted,
            "asks for a certificate of the client",
        ),
        (
            authority.issue(),
            Some(&authority),
            showing(&authority, stranger.issue()),
            "does not trust the client's certificate",
        ),
    ] {
        let files = Files::with_pair(&pair);
        if let Some(authority) = client_authority {
            files.write("ca.crt", &authority.pem);
        }
        let server = files.start().await;
        let error = list_models(&server, &connection).await.unwrap_err();
        says!(in_our_words(&error), expected);
    }

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
        // It is reported before a connection is made.
        let error = Client::connect("https://127.0.0.1:1", connection)
            .await
            .unwrap_err();
        assert!(
            matches!(error, ClientError::Tls { .. }) && error.code().is_none(),
            "{error:?}"
        );
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
    says!(
        in_our_words(&error),
        "did not accept the connection in time"
    );
    assert!(
        since.elapsed() < Duration::from_secs(5),
        "{:?}",
        since.elapsed()
    );
}
