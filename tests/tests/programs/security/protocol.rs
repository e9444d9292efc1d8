//! Requests over HTTP/2 that are no calls.

use hlorank_tests::prelude::*;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tonic::codec::CompressionEncoding::Gzip;

const METHOD: &str = "hlorank.v1.ModelService/ListModels";

/// Sends a gRPC message with another method or content type, and returns HTTP status, gRPC status and text.
async fn send(
    server: &TestServer,
    method: Method,
    content: Option<&str>,
) -> (StatusCode, Option<Status>, String) {
    let client = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http::<Full<Bytes>>();
    let request = Request::builder()
        .method(method)
        .uri(format!("{}/{METHOD}", server.endpoint()));
    let request = content.into_iter().fold(request, |request, content| {
        request.header("content-type", content)
    });
    // An empty message.
    let request = request.body(Full::from(vec![0_u8; 5])).unwrap();
    let (head, body) = client.request(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap();
    let status = body.trailers().and_then(Status::from_header_map);
    let text = String::from_utf8_lossy(&body.to_bytes()).into_owned();
    (
        head.status,
        status.or_else(|| Status::from_header_map(&head.headers)),
        text,
    )
}

#[tokio::test]
async fn only_posts_of_grpc_reach_a_method() {
    let server = TestServer::start().await;
    for content in ["application/grpc", "application/grpc+proto"] {
        let (http, status, _) = send(&server, Method::POST, Some(content)).await;
        assert_eq!(
            (http, status.unwrap().code()),
            (StatusCode::OK, tonic::Code::Ok),
            "{content}"
        );
    }
    for method in [Method::GET, Method::PUT, Method::HEAD] {
        let (http, status, _) = send(&server, method.clone(), Some("application/grpc")).await;
        assert_eq!(
            (http, status.is_none()),
            (StatusCode::METHOD_NOT_ALLOWED, true),
            "{method}"
        );
    }
    for content in [
        None,
        Some("text/plain"),
        Some("application/jsonp"),
        Some("application/grpc-web+proto"),
    ] {
        let (http, status, text) = send(&server, Method::POST, content).await;
        assert_eq!(
            (http, status.is_none()),
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, true),
            "{content:?}"
        );
        says!(text, "application/grpc", "CONTENT_TYPE_UNSUPPORTED");
    }
    let scrape = server.scrape().await;
    let calls = scrape.sum("hlorank_requests_total", &[]);
    assert_eq!(calls, 2.0, "no handler has run for the others");
}

#[tokio::test]
async fn answers_are_not_compressed() {
    let server = TestServer::start().await;
    let graph = kernel_graph(graph_of_module(two_dots()));
    let request = rank_request(graph, packed_tiles(&grid_tiles(500)));
    let mut client = server.cost_model().await.accept_compressed(Gzip);
    let answer = client.rank_configs(request).await.unwrap();
    assert!(answer.metadata().get("grpc-encoding").is_none());
    assert_eq!(answer.get_ref().ranking.len(), 500);
}
