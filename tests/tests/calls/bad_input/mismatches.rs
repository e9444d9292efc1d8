//! Parts of a request that do not fit together.

use hlorank_tests::prelude::*;

use super::request::{sound, tiles, with_graph, with_model};

#[tokio::test]
async fn requests_that_do_not_fit_together_are_refused() {
    let server = TestServer::start().await;
    let kernel = kernel_graph(graph_of_module(two_dots()));
    let unknown = Refusal {
        code: Code::FailedPrecondition,
        reason: "GRAPH_NOT_CACHED",
        words: &["07070707", "send the graph"],
    };
    let not_found = |words| Refusal {
        code: Code::NotFound,
        reason: "MODEL_NOT_FOUND",
        words,
    };
    let cases = vec![
        (with_graph(graph_by_hash(vec![7; 32])), unknown),
        (
            with_graph(graph_by_hash(vec![7; 31])),
            invalid("FIELD_INVALID", &["graph_hash", "31 bytes", "32 bytes"]),
        ),
        (
            with_graph(Graph::default()),
            invalid("FIELD_MISSING", &["graph.source", "hlo_module"]),
        ),
        (
            RankConfigsRequest {
                graph: None,
                ..sound()
            },
            invalid("FIELD_MISSING", &["graph", "hlo_module"]),
        ),
        (
            RankConfigsRequest {
                batch: None,
                ..sound()
            },
            invalid("FIELD_MISSING", &["configs", "packed_tile_configs"]),
        ),
        (
            RankConfigsRequest {
                batch: Some(ConfigBatch { configs: None }),
                ..sound()
            },
            invalid("FIELD_MISSING", &["configs", "packed_tile_configs"]),
        ),
        (
            with_graph(Graph {
                task: 9,
                ..graph_of_module(two_dots())
            }),
            invalid("FIELD_INVALID", &["graph.task", "9"]),
        ),
        (
            with_graph(kernel),
            invalid("GRAPH_TASK_MISMATCH", &["layout configurations", "tile"]),
        ),
        (
            with_model("no-such-model", 0),
            not_found(&["no-such-model", "layout-xla-cpu"]),
        ),
        (
            with_model("layout-xla-cpu", 999),
            not_found(&["version 999"]),
        ),
        (
            with_model("layout-xla-cpu", 0).with_configs(tiles()),
            invalid(
                "MODEL_TASK_MISMATCH",
                &["layout-xla-cpu", "tile configurations"],
            ),
        ),
    ];
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn tiles_for_a_layout_graph_that_is_cached_are_refused() {
    let server = TestServer::start().await;
    let cached = server.rank(sound()).await.unwrap().graph_hash;
    let request = with_graph(graph_by_hash(cached)).with_configs(tiles());
    server
        .refuses(
            &sound(),
            [(
                request,
                invalid("GRAPH_TASK_MISMATCH", &["tile configurations", "layout"]),
            )],
        )
        .await;
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused() {
    let server = TestServer::start().await;
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.unwrap();
    // Field 1 of a request is a message, but here it is a number.
    let wrong = PackedTileConfigs {
        config_count: 7,
        ..Default::default()
    };
    let path = "/hlorank.v1.CostModelService/RankConfigs".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<PackedTileConfigs, RankConfigsResponse>::default();
    let status = client
        .unary(tonic::Request::new(wrong), path, codec)
        .await
        .unwrap_err();
    invalid("REQUEST_MALFORMED", &["not a readable message"]).check(&status);
    assert!(status.get_details_bad_request().is_none(), "{status}");
    server.rank(sound()).await.expect("the server goes on");
}

#[tokio::test]
async fn a_name_of_megabytes_still_gets_a_readable_refusal() {
    let server = TestServer::start().await;
    let expected = Refusal {
        code: Code::NotFound,
        reason: "MODEL_NOT_FOUND",
        words: &["xxx", "layout-xla-cpu"],
    };
    server
        .refuses(&sound(), [(with_model(&"x".repeat(1 << 20), 0), expected)])
        .await;
}
