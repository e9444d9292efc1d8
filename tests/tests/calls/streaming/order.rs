//! Messages in the wrong order and batches that do not match the graph end the stream with an error that says where.

use hlorank_proto::v1::{
    rank_configs_stream_request::Part, rank_configs_stream_response::Part as Answer,
};
use hlorank_tests::prelude::*;
use hlorank_tests::{
    stream_batch as batch, stream_start as start, stream_start_with as start_with,
};

use crate::streaming::call::{Stream, empty_graph, exchange, kernel, layouts_graph, tiles};

/// Messages of a stream, and its expected rejection.
struct Refusal {
    messages: Vec<RankConfigsStreamRequest>,
    /// Number of batches that are scored before.
    scored: usize,
    code: Code,
    reason: &'static str,
    field: Option<&'static str>,
    words: &'static [&'static str],
}

fn refusal(
    messages: Vec<RankConfigsStreamRequest>,
    scored: usize,
    code: Code,
    reason: &'static str,
    field: Option<&'static str>,
    words: &'static [&'static str],
) -> Refusal {
    Refusal {
        messages,
        scored,
        code,
        reason,
        field,
        words,
    }
}

fn invalid(
    messages: Vec<RankConfigsStreamRequest>,
    scored: usize,
    reason: &'static str,
    field: &'static str,
    words: &'static [&'static str],
) -> Refusal {
    refusal(
        messages,
        scored,
        Code::InvalidArgument,
        reason,
        Some(field),
        words,
    )
}

async fn check_all(server: &TestServer, cases: Vec<Refusal>) {
    for case in cases {
        let (answers, refused) = exchange(server, case.messages).await;
        let status = refused.unwrap_or_else(|| panic!("{}: {answers:?}", case.reason));
        assert_eq!(
            answers
                .iter()
                .filter(|answer| matches!(answer, Answer::Scores(_)))
                .count(),
            case.scored
        );
        check(&status, case.code, case.reason, case.words);
        let details = status.get_error_details();
        let field = details
            .bad_request()
            .map(|request| request.field_violations[0].field.as_str());
        assert_eq!(field, case.field, "{status}");
        let (_, refused) = exchange(server, vec![start(kernel()), batch(tiles(1))]).await;
        assert!(refused.is_none(), "the server goes on");
    }
}

pub(crate) fn check(status: &Status, code: Code, reason: &str, words: &[&str]) {
    let details = status.get_error_details();
    let info = details
        .error_info()
        .unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
    assert_eq!(
        (status.code(), info.reason.as_str(), info.domain.as_str()),
        (code, reason, "hlorank")
    );
    for word in words {
        assert!(
            status.message().contains(word),
            "{:?} does not say {word:?}",
            status.message()
        );
    }
}

#[tokio::test]
async fn messages_in_the_wrong_order_are_refused() {
    let server = TestServer::start().await;
    let nothing = || RankConfigsStreamRequest { part: None };
    let bare_batch = || RankConfigsStreamRequest {
        part: Some(Part::Batch(ConfigBatch { configs: None })),
    };
    let (start, batch) = (|| start(kernel()), || batch(tiles(5)));
    let (missing, invalid_field) = ("FIELD_MISSING", "FIELD_INVALID");
    let cases = vec![
        invalid(vec![], 0, missing, "start", &["first message"]),
        invalid(vec![batch()], 0, missing, "start", &["first message"]),
        invalid(vec![nothing()], 0, missing, "part", &["start", "batch"]),
        invalid(
            vec![start(), nothing()],
            0,
            missing,
            "part",
            &["start", "batch"],
        ),
        invalid(
            vec![start(), start()],
            0,
            invalid_field,
            "start",
            &["sent again", "beginning"],
        ),
        invalid(
            vec![start(), batch(), start()],
            1,
            invalid_field,
            "start",
            &["sent again"],
        ),
        invalid(vec![start()], 0, missing, "batch", &["at least one"]),
        invalid(
            vec![start(), batch(), bare_batch()],
            1,
            missing,
            "configs",
            &["packed_tile_configs"],
        ),
    ];
    check_all(&server, cases).await;
}

#[tokio::test]
async fn a_start_that_cannot_be_is_refused() {
    let server = TestServer::start().await;
    let by_hash = graph_by_hash(vec![7; 32]);
    let unsettled = Graph {
        task: 0,
        ..kernel()
    };
    let by_model = |name| RankConfigsStart {
        graph: Some(kernel()),
        model: Some(model_named(name)),
        ..Default::default()
    };
    let (wrong_model, no_model) = (by_model("layout-xla-cpu"), by_model("none"));
    let cases = vec![
        refusal(
            vec![start(by_hash)],
            0,
            Code::FailedPrecondition,
            "GRAPH_NOT_CACHED",
            None,
            &["0707", "send"],
        ),
        invalid(
            vec![start_with(RankConfigsStart::default())],
            0,
            "FIELD_MISSING",
            "graph",
            &["hlo_module"],
        ),
        invalid(
            vec![start(unsettled)],
            0,
            "FIELD_MISSING",
            "graph.task",
            &["TASK_TILE"],
        ),
        invalid(vec![start(empty_graph())], 0, "GRAPH_EMPTY", "graph", &[]),
        invalid(
            vec![start_with(wrong_model)],
            0,
            "MODEL_TASK_MISMATCH",
            "model",
            &["layout-xla-cpu"],
        ),
        refusal(
            vec![start_with(no_model)],
            0,
            Code::NotFound,
            "MODEL_NOT_FOUND",
            None,
            &["none"],
        ),
    ];
    check_all(&server, cases).await;
}

#[tokio::test]
async fn a_batch_that_does_not_fit_is_refused_with_its_place() {
    let server = TestServer::start().await;
    let node = |node| NodeLayout {
        node,
        tensors: vec![],
    };
    let layouts = |nodes: &[u32]| {
        let configs = nodes
            .iter()
            .map(|&number| LayoutConfig {
                nodes: vec![node(number)],
            })
            .collect();
        batch(Configs::LayoutConfigs(LayoutConfigs { configs }))
    };
    let no_tiles = Configs::PackedTileConfigs(PackedTileConfigs::default());
    let place = &[
        "batch 1",
        "number 2 of the stream",
        "configuration 1",
        "node 0",
    ];
    let cases = vec![
        invalid(
            vec![start(layouts_graph()), layouts(&[3, 4]), layouts(&[3, 0])],
            1,
            "NODE_NOT_CONFIGURABLE",
            "layout_configs",
            place,
        ),
        invalid(
            vec![start(layouts_graph()), layouts(&[3, 4]), batch(tiles(1))],
            1,
            "GRAPH_TASK_MISMATCH",
            "packed_tile_configs",
            &["batch 1", "tile"],
        ),
        invalid(
            vec![start(kernel()), batch(no_tiles)],
            0,
            "CONFIGS_EMPTY",
            "packed_tile_configs",
            &["batch 0", "no configurations"],
        ),
    ];
    check_all(&server, cases).await;
}

#[tokio::test]
async fn bytes_that_are_no_message_are_refused_in_the_middle_of_a_stream() {
    let server = TestServer::start().await;
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.unwrap();
    // Field 1 of a message of a stream is a message, but here it is a number.
    let wrong = PackedTileConfigs {
        config_count: 7,
        ..Default::default()
    };
    let path = "/hlorank.v1.CostModelService/RankConfigsStream"
        .parse()
        .unwrap();
    let codec = tonic_prost::ProstCodec::<PackedTileConfigs, RankConfigsStreamResponse>::default();
    let messages = tonic::Request::new(tokio_stream::once(wrong));
    let mut answers = client
        .streaming(messages, path, codec)
        .await
        .unwrap()
        .into_inner();
    let status = answers.message().await.unwrap_err();
    check(
        &status,
        Code::InvalidArgument,
        "REQUEST_MALFORMED",
        &["not a readable message"],
    );
    Stream::started(server.channel().await, kernel()).await;
}
