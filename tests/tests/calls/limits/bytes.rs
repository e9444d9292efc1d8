//! Limits of the bytes of a request, as sent and as decompressed, and of its headers.

use hlorank_tests::attackers::messages::gzip;
use hlorank_tests::prelude::*;
use tonic::codec::CompressionEncoding::Gzip;

use crate::limits::request::{layouts_of, text};

const LIMIT: usize = 10_000;

/// Returns a request of this number of bytes: a third are spaces in a text, and most of the others are configurations.
fn request_of(bytes: usize) -> RankConfigsRequest {
    let lines = [
        "p = f32[8,8] parameter(0)".to_owned(),
        "d = f32[8,8] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}".to_owned(),
    ];
    let Configs::LayoutConfigs(LayoutConfigs { mut configs }) = layouts_of(1) else {
        unreachable!("the layouts are readable")
    };
    configs.resize(bytes / 3, LayoutConfig::default());
    let padded = |spaces| {
        let text = text(&lines) + &" ".repeat(spaces);
        let configs = configs.clone();
        let configs = Configs::LayoutConfigs(LayoutConfigs { configs });
        rank_request(graph_of(Source::HloText(text)), configs)
    };
    let beside = padded(bytes / 2).encoded_len() - bytes / 2;
    let request = padded(bytes - beside);
    assert_eq!(request.encoded_len(), bytes);
    request
}

async fn limited() -> TestServer {
    TestServer::start_with(&[&format!("--max-message-bytes={LIMIT}")]).await
}

async fn rank(
    mut service: CostModelServiceClient<Channel>,
    bytes: usize,
) -> Result<RankConfigsResponse, Status> {
    service
        .rank_configs(request_of(bytes))
        .await
        .map(tonic::Response::into_inner)
}

fn check(refused: &Status) {
    let info = refused.get_details_error_info().unwrap();
    assert_eq!(
        (refused.code(), info.reason.as_str()),
        (Code::ResourceExhausted, "MESSAGE_TOO_LARGE")
    );
    assert_eq!(info.metadata["limit"], "--max-message-bytes");
    says!(
        refused.message(),
        "10000 bytes",
        "fewer configurations",
        "--max-message-bytes"
    );
}

#[tokio::test]
async fn bytes_of_a_message() {
    let (server, usual) = (limited().await, TestServer::start().await);
    let answer = rank(server.cost_model().await, LIMIT)
        .await
        .expect("it is at the limit");
    let expected = rank(usual.cost_model().await, LIMIT).await.unwrap();
    assert_eq!(answer.ranking_scores, expected.ranking_scores);
    let refused = rank(server.cost_model().await, LIMIT + 1)
        .await
        .unwrap_err();
    check(&refused);
    says!(refused.message(), "10001 bytes");
}

#[tokio::test]
async fn bytes_that_a_message_is_decompressed_to() {
    let server = limited().await;
    let expected = rank(server.cost_model().await, LIMIT).await.unwrap();
    let service = server.cost_model().await.send_compressed(Gzip);
    let answer = rank(service.clone(), LIMIT)
        .await
        .expect("it is at the limit");
    assert_eq!(answer.ranking_scores, expected.ranking_scores);
    check(&rank(service.clone(), LIMIT + 1).await.unwrap_err());
    check(&rank(service, 100 * LIMIT).await.unwrap_err());
}

#[tokio::test]
async fn bytes_of_headers() {
    const HEADER_LIMIT: usize = 16 << 10;
    let server = TestServer::start().await;
    let mut models = ModelServiceClient::new(server.channel().await);
    let mut list = async |bytes: usize| {
        let request = with_headers(ListModelsRequest {}, &[("x-long", &"x".repeat(bytes))]);
        models.list_models(request).await
    };
    // The gRPC library sends headers of its own, whose size is not known here.
    let (mut taken, mut refused) = (HEADER_LIMIT / 2, HEADER_LIMIT);
    while refused - taken > 1 {
        let between = usize::midpoint(taken, refused);
        match list(between).await {
            Ok(_) => taken = between,
            Err(status) => {
                // The transport rejects it with an HTTP status.
                says!(status.message(), "431");
                refused = between;
            }
        }
    }
    let beside = HEADER_LIMIT - taken - "x-long".len() - 32;
    assert!(
        (200..600).contains(&beside),
        "{beside} bytes of other headers"
    );
    assert!(list(taken).await.is_ok(), "the connection goes on");
}

/// The limit.
const MAX_RATIO: usize = 500;

/// The limit applies to messages of more bytes.
const MIN_BYTES: usize = 4 << 20;

/// Returns a message of more than the minimum, with configurations drawn from those that were measured.
fn message_of(configs: impl Fn(usize) -> Configs) -> Vec<u8> {
    let message = |count| {
        let batch = Some(config_batch(configs(count)));
        RankConfigsRequest {
            batch,
            ..RankConfigsRequest::default()
        }
        .encode_to_vec()
    };
    message(1000 * MIN_BYTES / message(1000).len() + 1000)
}

#[test]
fn batches_are_far_from_the_limit_of_compression() {
    let mut most = 0;
    for graph in measured_graphs() {
        let measured = configurations(&graph);
        let configurable = &graph.graph.configurable();
        let count = forms(measured, configurable).len();
        for form in 0..count {
            let drawn = |count: usize| {
                let mut random = fastrand::Rng::with_seed(1);
                std::iter::repeat_with(move || random.usize(..measured.len())).take(count)
            };
            let message = message_of(|count| {
                forms(&part(measured, drawn(count)), configurable).swap_remove(form)
            });
            let ratio = message.len() / gzip(message.as_slice()).len();
            println!(
                "{}, form {form}, {} bytes: {ratio}",
                graph.name,
                message.len()
            );
            most = most.max(ratio);
        }
    }
    assert!(2 * most < MAX_RATIO, "{most}");
}
