//! A web page that points its own name at the server (DNS rebinding) gets no answer.

use std::{
    io::{Read as _, Write as _},
    net::{SocketAddr, TcpStream},
};

use hlorank_tests::prelude::*;

const ADMIN: &str = "--admin-listen=127.0.0.1:0";
const EVIL: &str = "evil.example:7070";

/// Sends a request over HTTP/1.1 or 1.0 with these lines of headers, and returns the answer.
async fn send(address: SocketAddr, first: &str, headers: &str) -> String {
    let head = format!(
        "{first}\r\n{headers}content-type: application/json\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{{}}"
    );
    let answer = tokio::task::spawn_blocking(move || {
        let mut stream = TcpStream::connect(address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The server may reset the connection behind its answer, because it has not read the body.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    });
    answer.await.unwrap()
}

fn address(endpoint: &str) -> SocketAddr {
    endpoint.trim_start_matches("http://").parse().unwrap()
}

async fn list_as(endpoint: &str, host: &str) -> Result<(), Status> {
    let origin = format!("http://{host}").parse().unwrap();
    let channel = Endpoint::from_shared(endpoint.to_owned())
        .unwrap()
        .origin(origin)
        .connect()
        .await
        .unwrap();
    ModelServiceClient::new(channel)
        .list_models(ListModelsRequest {})
        .await
        .map(drop)
}

const LIST: &str = "POST /hlorank.v1.ModelService/ListModels HTTP/1.1";
const METRICS: &str = "GET /metrics HTTP/1.1";

#[tokio::test(flavor = "multi_thread")]
async fn calls_under_a_strange_name_are_refused_by_every_listener() {
    let server = TestServer::start_with(&[ADMIN]).await;
    let admin = server.admin_endpoint().unwrap();
    let metrics = server.metrics_address();
    for endpoint in [server.endpoint(), &admin] {
        let refused = list_as(endpoint, EVIL).await.unwrap_err();
        let reason = reason(&refused);
        assert_eq!(
            (refused.code(), &*reason),
            (Code::PermissionDenied, "HOST_NOT_ALLOWED"),
            "{refused}"
        );
        says!(refused.message(), "--allowed-hosts");
        let json = send(address(endpoint), LIST, &format!("host: {EVIL}\r\n")).await;
        assert!(
            json.starts_with("HTTP/1.1 421 ") && json.contains("HOST_NOT_ALLOWED"),
            "{json}"
        );
        list_as(endpoint, "LOCALHOST.:7070").await.unwrap();
        list_as(endpoint, "10.11.12.13:7070").await.unwrap();
        list_as(endpoint, "[::1]").await.unwrap();
    }
    for page in [
        "/",
        "/metrics",
        "/healthz",
        "/readyz",
        "/openapi.json",
        "/searches",
        "/none",
    ] {
        let page = send(
            metrics,
            &format!("GET {page} HTTP/1.1"),
            &format!("host: {EVIL}\r\n"),
        )
        .await;
        assert!(
            page.starts_with("HTTP/1.1 421 ") && page.contains("HOST_NOT_ALLOWED"),
            "{page}"
        );
    }
    let scraped = send(metrics, METRICS, "host: 10.11.12.13:7071\r\n").await;
    assert!(scraped.starts_with("HTTP/1.1 200 "), "{scraped}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_one_host() {
    let server = TestServer::start().await;
    let (calls, metrics) = (address(server.endpoint()), server.metrics_address());
    for (address, first) in [(calls, LIST), (metrics, METRICS)] {
        for headers in [
            "",
            "host:\r\n",
            "host: a b\r\n",
            "host: localhost\r\nhost: localhost\r\n",
        ] {
            let refused = send(address, first, headers).await;
            assert!(
                refused.starts_with("HTTP/1.1 400 "),
                "{headers:?}: {refused}"
            );
            assert!(refused.contains("HOST_INVALID"), "{headers:?}: {refused}");
        }
        let old = first.replace("HTTP/1.1", "HTTP/1.0");
        assert!(
            send(address, &old, "").await.starts_with("HTTP/1.0 200 "),
            "{old}"
        );
        assert!(
            send(address, &old, &format!("host: {EVIL}\r\n"))
                .await
                .contains("HOST_NOT_ALLOWED"),
            "{old}"
        );
    }
    let absolute = "POST http://evil.example/hlorank.v1.ModelService/ListModels HTTP/1.1";
    let refused = send(calls, absolute, "host: localhost\r\n").await;
    assert!(refused.starts_with("HTTP/1.1 421 "), "{refused}");
}

#[tokio::test(flavor = "multi_thread")]
async fn listed_names_are_answered() {
    let server = TestServer::start_with(&["--allowed-hosts=hlorank,*.cluster.local"]).await;
    for host in ["hlorank:7070", "Hlorank.", "a.b.cluster.local"] {
        list_as(server.endpoint(), host).await.unwrap();
        let scraped = send(
            server.metrics_address(),
            METRICS,
            &format!("host: {host}\r\n"),
        )
        .await;
        assert!(scraped.starts_with("HTTP/1.1 200 "), "{scraped}");
    }
    assert!(
        list_as(server.endpoint(), "hlorank.evil.example")
            .await
            .is_err()
    );
    let open = TestServer::start_with(&["--allowed-hosts=*"]).await;
    list_as(open.endpoint(), EVIL).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_tokens_has_any_name() {
    let files = Files::new();
    files.write("tokens", &token_line("ci", "read", "secret"));
    let server = files.start().await;
    let refused = list_as(server.endpoint(), EVIL).await.unwrap_err();
    assert_eq!(reason(&refused), "TOKEN_MISSING");
}
