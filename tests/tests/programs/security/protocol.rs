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
    let message = hlorank_proto::v1::ListModelsRequest {}.encode_to_vec();
    let framed = [vec![0; 5], message].concat();
    let response = client
        .request(request.body(Full::from(framed)).unwrap())
        .await
        .unwrap();
    let (head, body) = response.into_parts();
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

fn request() -> RankConfigsRequest {
    let configs = (1..=500).map(|bound| TileConfig {
        output_bounds: vec![bound],
        ..Default::default()
    });
    let configs = Configs::TileConfigs(TileConfigs {
        configs: configs.collect(),
    });
    rank_request(graph_of_module(two_dots()), configs).with_scores()
}

#[tokio::test]
async fn compressed_requests_have_the_answers_of_others() {
    let server = TestServer::start().await;
    let channel = server.channel().await;
    let plain = CostModelServiceClient::new(channel.clone())
        .rank_configs(request())
        .await
        .unwrap();
    let client = CostModelServiceClient::new(channel).accept_compressed(Gzip);
    let sent = client.send_compressed(Gzip).rank_configs(request()).await;
    let sent = sent.unwrap();
    assert!(sent.metadata().get("grpc-encoding").is_none());
    assert_eq!(sent.get_ref().scores, plain.get_ref().scores);
}
