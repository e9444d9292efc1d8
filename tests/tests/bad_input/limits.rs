//! More than is allowed.

use hlorank_proto::v1::{
    LayoutConfig, LayoutConfigs, PackedTileConfigs, RankConfigsRequest,
    cost_model_service_client::CostModelServiceClient, rank_configs_request::Configs,
};
use hlorank_tests::{
    TestServer,
    module::{operation, single},
};
use tonic::Code;

use crate::request::{
    Refusal, check, graph_of_text, invalid, refuse, refuse_all, sound, with_configs, with_graph, with_model,
    with_module,
};

#[tokio::test]
async fn limits_hold() {
    let flags = [
        "--max-nodes=6",
        "--max-edges=5",
        "--max-configs=3",
        "--max-config-entries=5",
        "--max-graph-bytes=1000",
    ];
    let server = TestServer::start_with(&flags).await;
    let nodes = |count| single((1..=count).map(|id| operation("dot", id, &[])).collect());
    let edges = |count| {
        single(
            (1..=2)
                .chain(3..=3)
                .map(|id| operation("dot", id, &[1, 2, 1, 2, 1, 2][..count * usize::from(id == 3)]))
                .collect(),
        )
    };
    let text = |count| {
        let lines: Vec<String> = (0..count).map(|id| format!("  c.{id} = f32[] constant(0)\n")).collect();
        format!("HloModule m\n\nENTRY e {{\n{}}}\n", lines.concat())
    };
    let layouts =
        |count| Configs::LayoutConfigs(LayoutConfigs { configs: vec![LayoutConfig::default(); count] });
    let cases = vec![
        (with_module(nodes(7)), invalid("GRAPH_TOO_LARGE", &["6 nodes", "--max-nodes"])),
        (with_module(edges(6)), invalid("GRAPH_TOO_LARGE", &["5 edges", "--max-edges"])),
        (with_module(vec![0; 1001]), invalid("GRAPH_TOO_LARGE", &["1001", "1000", "--max-graph-bytes"])),
        (with_graph(graph_of_text(&text(7))), invalid("GRAPH_TOO_LARGE", &["6 nodes", "--max-nodes"])),
        (
            with_graph(graph_of_text(&" ".repeat(1001))),
            invalid("GRAPH_TOO_LARGE", &["hlo_text", "1001", "1000", "--max-graph-bytes"]),
        ),
        (with_configs(layouts(4)), invalid("TOO_MANY_CONFIGS", &["4 configurations", "3", "--max-configs"])),
        (with_configs(layouts(3)), invalid("TOO_MANY_CONFIGS", &["5 entries", "--max-config-entries"])),
        (
            RankConfigsRequest {
                configs: Some(Configs::PackedTileConfigs(PackedTileConfigs {
                    config_count: u32::MAX,
                    ..Default::default()
                })),
                ..sound()
            },
            invalid("TOO_MANY_CONFIGS", &["--max-configs"]),
        ),
    ];
    refuse_all(&server, cases).await;

    let mut service = server.cost_model().await;
    let at_the_limit = |request| async { service.clone().rank_configs(request).await.map(drop) };
    at_the_limit(with_configs(layouts(2))).await.expect("as many entries as fit");
    let five_edges = RankConfigsRequest { configs: Some(layouts(1)), ..with_module(edges(5)) };
    at_the_limit(five_edges).await.expect("as many edges as are allowed");
    service.rank_configs(sound()).await.expect("the server goes on");
}

#[tokio::test]
async fn a_message_past_the_limit_is_refused() {
    let server = TestServer::start_with(&["--max-message-bytes=10000"]).await;
    let words = &["10000 bytes", "--max-message-bytes"];
    let expected = Refusal { code: Code::ResourceExhausted, reason: "MESSAGE_TOO_LARGE", words };
    refuse(&server, with_module(vec![0; 20_000]), &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_server_refuses_at_once_and_says_when_to_try_again() {
    let server = TestServer::start_with(&["--max-requests=1"]).await;
    let channel = server.channel().await;
    let calls = (0..64).map(|_| {
        let mut service = CostModelServiceClient::new(channel.clone());
        tokio::spawn(async move { service.rank_configs(sound()).await.map(drop) })
    });
    let calls: Vec<_> = calls.collect();
    let mut refused = Vec::new();
    for call in calls {
        refused.extend(call.await.unwrap().err());
    }
    assert!((1..64).contains(&refused.len()), "{} of 64 calls were refused", refused.len());
    let words = &["1 requests", "try again"];
    let expected = Refusal { code: Code::ResourceExhausted, reason: "OVERLOADED", words };
    for status in &refused {
        check(status, &expected);
    }
    server.cost_model().await.rank_configs(sound()).await.expect("the server goes on");
}

#[tokio::test]
async fn a_name_of_megabytes_still_gets_a_readable_refusal() {
    let server = TestServer::start().await;
    let expected =
        Refusal { code: Code::NotFound, reason: "MODEL_NOT_FOUND", words: &["xxx", "layout-xla-cpu"] };
    refuse(&server, with_model(&"x".repeat(1 << 20), 0), &expected).await;
}
