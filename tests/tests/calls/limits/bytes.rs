//! Limits of the bytes of a request, as sent and as decompressed, and of its headers.

use hlorank_tests::attackers::messages::gzip;
use hlorank_tests::prelude::*;
use tonic::codec::CompressionEncoding::Gzip;

use crate::limits::request::{Past, dot_and, layouts_of};

const LIMIT: usize = 10_000;

/// Returns a request of this number of bytes: a third are spaces in a text, and most of the others are configurations.
fn request_of(bytes: usize) -> RankConfigsRequest {
    let Configs::LayoutConfigs(LayoutConfigs { mut configs }) = layouts_of(1) else {
        unreachable!("the layouts are readable")
    };
    configs.resize(bytes / 3, LayoutConfig::default());
    let padded = |spaces| {
        let text = dot_and([]) + &" ".repeat(spaces);
        let configs = LayoutConfigs {
            configs: configs.clone(),
        };
        rank_request(graph_of_text(text), Configs::LayoutConfigs(configs))
    };
    let beside = padded(bytes / 2).encoded_len() - bytes / 2;
    let request = padded(bytes - beside);
    assert_eq!(request.encoded_len(), bytes);
    request
}

#[tokio::test]
async fn bytes_of_a_message_as_sent_and_as_decompressed() {
    let server = TestServer::start_with(&[&format!("--max-message-bytes={LIMIT}")]).await;
    let usual = TestServer::start().await;
    let expected = usual.rank(request_of(LIMIT)).await.unwrap();
    let sent = server.cost_model().await;
    let compressed = server.cost_model().await.send_compressed(Gzip);
    for (mut service, found) in [(sent, Some(LIMIT + 1)), (compressed, None)] {
        let answer = service.rank_configs(request_of(LIMIT)).await;
        let answer = answer.expect("it is at the limit").into_inner();
        assert_eq!(answer.ranking_scores, expected.ranking_scores);
        let refused = service.rank_configs(request_of(LIMIT + 1)).await;
        Past::setting("MESSAGE_TOO_LARGE", "--max-message-bytes", found, LIMIT)
            .saying("fewer configurations")
            .check(&refused.unwrap_err());
    }
}

#[tokio::test]
async fn bytes_of_headers() {
    const HEADER_LIMIT: usize = 16 << 10;
    let server = TestServer::start().await;
    let mut models = server.models().await;
    let mut list = async |beside: usize| {
        let value = "x".repeat(HEADER_LIMIT - beside - "x-long".len() - 32);
        let request = with_headers(ListModelsRequest {}, &[("x-long", &value)]);
        models.list_models(request).await
    };
    // The gRPC library sends headers of its own, of 200 to 600 bytes.
    let refused = list(199).await.unwrap_err();
    // The transport rejects it with an HTTP status.
    says!(refused.message(), "431");
    list(600).await.expect("the connection goes on");
}

/// The limit.
const MAX_RATIO: usize = 500;

/// The limit applies to messages of more bytes.
const MIN_BYTES: usize = 4 << 20;

/// Returns a message of more than the minimum, with configurations drawn from those that were measured.
fn message_of(configs: impl Fn(usize) -> Configs) -> Vec<u8> {
    let message = |count| {
        RankConfigsRequest::default()
            .with_configs(configs(count))
            .encode_to_vec()
    };
    message(1000 * MIN_BYTES / message(1000).len() + 1000)
}

#[test]
fn batches_are_far_from_the_limit_of_compression() {
    for graph in measured_graphs() {
        let (measured, nodes) = (configurations(&graph), graph.graph.configurable());
        for form in 0..forms(measured, nodes).len() {
            let message = message_of(|count| {
                let mut random = Rng::with_seed(1);
                let drawn = std::iter::repeat_with(|| random.usize(..measured.len())).take(count);
                forms(&part(measured, drawn), nodes).swap_remove(form)
            });
            let ratio = message.len() / gzip(message.as_slice()).len();
            let what = format!("{}, form {form}, {} bytes", graph.name, message.len());
            assert!(2 * ratio < MAX_RATIO, "{what}: {ratio}");
        }
    }
}
