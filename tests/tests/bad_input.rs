//! Every kind of bad input has its status, its `ErrorInfo` reason and a message that says where, and the server
//! goes on.

use hlorank_proto::v1::{
    DeltaLayoutConfigs, Graph, GraphFeatures, LayoutConfig, LayoutConfigs, LayoutTable, ModelSelector,
    NodeLayout, PackedLayoutConfigs, PackedTileConfigs, RankConfigsRequest, RankConfigsResponse, Task,
    TensorLayout, TileConfig, TileConfigs, cost_model_service_client::CostModelServiceClient, graph::Source,
    rank_configs_request::Configs,
};
use hlorank_tests::{
    TestServer,
    module::{computation, instruction, module, operation, single, two_dots},
};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// What a refusal must look like.
struct Refusal {
    code: Code,
    reason: &'static str,
    /// Words of the message: the place, the limit.
    words: &'static [&'static str],
}

const fn invalid(reason: &'static str, words: &'static [&'static str]) -> Refusal {
    Refusal { code: Code::InvalidArgument, reason, words }
}

fn graph_of(module: Vec<u8>) -> Graph {
    Graph { source: Some(Source::HloModule(module.into())), ..Default::default() }
}

fn features(nodes: usize) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        ..Default::default()
    }
}

fn graph_of_features(features: GraphFeatures) -> Graph {
    Graph { source: Some(Source::Features(features)), ..Default::default() }
}

fn node(node: u32, minor_to_major: &[i32]) -> NodeLayout {
    NodeLayout { node, tensors: vec![TensorLayout { minor_to_major: minor_to_major.to_vec() }] }
}

fn readable(nodes: Vec<NodeLayout>) -> Configs {
    Configs::LayoutConfigs(LayoutConfigs { configs: vec![LayoutConfig { nodes }] })
}

fn tables() -> Vec<LayoutTable> {
    vec![LayoutTable { entries: vec![0, 0, 0, 8, 0, 0] }; 2]
}

fn packed(config_count: u32, tables: Vec<LayoutTable>, indices: &[u8]) -> Configs {
    let indices = indices.to_vec().into();
    Configs::PackedLayoutConfigs(PackedLayoutConfigs { config_count, tables, indices })
}

fn delta(slots: Vec<u32>, entries: Vec<u32>) -> Configs {
    Configs::DeltaLayoutConfigs(DeltaLayoutConfigs {
        tables: tables(),
        base: vec![0, 0],
        change_counts: vec![u32::try_from(slots.len()).unwrap()],
        change_slots: slots,
        change_entries: entries,
    })
}

fn tiles() -> Configs {
    Configs::TileConfigs(TileConfigs {
        configs: vec![TileConfig { output_bounds: vec![8], ..Default::default() }],
    })
}

/// A request that is in order.
fn sound() -> RankConfigsRequest {
    RankConfigsRequest {
        graph: Some(graph_of(two_dots())),
        configs: Some(readable(vec![node(3, &[0, 1])])),
        ..Default::default()
    }
}

fn with_graph(graph: Graph) -> RankConfigsRequest {
    RankConfigsRequest { graph: Some(graph), ..sound() }
}

fn with_module(module: Vec<u8>) -> RankConfigsRequest {
    with_graph(graph_of(module))
}

fn with_configs(configs: Configs) -> RankConfigsRequest {
    RankConfigsRequest { configs: Some(configs), ..sound() }
}

fn with_model(name: &str, version: u64) -> RankConfigsRequest {
    RankConfigsRequest { model: Some(ModelSelector { name: name.to_owned(), version }), ..sound() }
}

async fn refuse(server: &TestServer, request: RankConfigsRequest, expected: &Refusal) {
    let mut service = server.cost_model().await;
    let status = service.rank_configs(request).await.expect_err(expected.reason);
    check(&status, expected);
    service.rank_configs(sound()).await.expect("the server goes on");
}

fn check(status: &Status, expected: &Refusal) {
    let details = status.get_error_details();
    let info = details.error_info().unwrap_or_else(|| panic!("{status} has no ErrorInfo"));
    assert_eq!((status.code(), info.reason.as_str()), (expected.code, expected.reason), "{status}");
    assert_eq!(info.domain, "hlorank");
    let to_blame = details.bad_request().is_some_and(|request| !request.field_violations.is_empty());
    assert_eq!(to_blame, expected.code == Code::InvalidArgument && expected.reason != "REQUEST_MALFORMED");
    assert_eq!(
        details.retry_info().is_some(),
        expected.code == Code::ResourceExhausted && expected.reason == "OVERLOADED"
    );
    for word in expected.words {
        assert!(status.message().contains(word), "{:?} does not say {word:?}", status.message());
    }
}

async fn refuse_all(server: &TestServer, cases: Vec<(RankConfigsRequest, Refusal)>) {
    for (request, expected) in cases {
        refuse(server, request, &expected).await;
    }
}

#[tokio::test]
async fn broken_graphs_are_refused() {
    let mut truncated = two_dots();
    truncated.truncate(truncated.len() - 3);
    let callee = |id| hlorank_proto::xla::HloInstructionProto {
        called_computation_ids: vec![id],
        ..instruction(1, &[])
    };
    let cases = vec![
        (with_module(truncated), invalid("HLO_MALFORMED", &["the module", "HloModuleProto"])),
        (with_module(b"not a module at all".to_vec()), invalid("HLO_MALFORMED", &["HloModuleProto"])),
        (with_module(vec![]), invalid("GRAPH_EMPTY", &["no instructions"])),
        (
            with_module(single(vec![instruction(7, &[]), instruction(7, &[])])),
            invalid("DUPLICATE_ID", &["node 1", "id 7"]),
        ),
        (
            with_module(module(vec![
                computation(1, vec![instruction(1, &[])]),
                computation(1, vec![instruction(2, &[])]),
            ])),
            invalid("DUPLICATE_ID", &["computation.1"]),
        ),
        (
            with_module(single(vec![instruction(1, &[9])])),
            invalid("UNKNOWN_OPERAND", &["node 0", "operand id 9"]),
        ),
        (with_module(single(vec![callee(5)])), invalid("UNKNOWN_CALLEE", &["node 0", "computation id 5"])),
        (
            with_module(single(vec![instruction(1, &[2]), instruction(2, &[1])])),
            invalid("GRAPH_CYCLE", &["node"]),
        ),
        (with_module(single(vec![instruction(1, &[])])), invalid("NOTHING_TO_CONFIGURE", &["convolution"])),
    ];
    refuse_all(&TestServer::start().await, cases).await;
}

#[tokio::test]
async fn broken_features_are_refused() {
    let mut not_finite = features(2);
    let mut bytes = not_finite.node_feat.to_vec();
    bytes[560..564].copy_from_slice(&f32::INFINITY.to_le_bytes());
    not_finite.node_feat = bytes.into();
    let cases = vec![
        (with_graph(graph_of_features(features(0))), invalid("GRAPH_EMPTY", &["no instructions"])),
        (
            with_graph(graph_of_features(GraphFeatures { node_feat: vec![0; 559].into(), ..features(1) })),
            invalid("FEATURES_INVALID", &["node_feat", "559", "560"]),
        ),
        (with_graph(graph_of_features(not_finite)), invalid("FEATURES_INVALID", &["feature 0 of node 1"])),
        (
            with_graph(graph_of_features(GraphFeatures { edge_index: vec![1], ..features(2) })),
            invalid("FEATURES_INVALID", &["edge_index"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures { edge_index: vec![1, 2], ..features(2) })),
            invalid("UNKNOWN_NODE", &["node 2", "2 nodes"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures { pad_value: 3, ..features(2) })),
            invalid("FEATURES_INVALID", &["3", "-1"]),
        ),
        (
            with_graph(Graph { configurable_nodes: vec![2], ..graph_of_features(features(2)) }),
            invalid("CONFIGURABLE_NODES_INVALID", &["node 2", "2 nodes"]),
        ),
        (
            with_graph(Graph { configurable_nodes: vec![1, 1], ..graph_of_features(features(2)) }),
            invalid("CONFIGURABLE_NODES_INVALID", &["node 1", "twice"]),
        ),
    ];
    refuse_all(&TestServer::start().await, cases).await;
}

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
    let layouts =
        |count| Configs::LayoutConfigs(LayoutConfigs { configs: vec![LayoutConfig::default(); count] });
    let cases = vec![
        (with_module(nodes(7)), invalid("GRAPH_TOO_LARGE", &["6 nodes", "--max-nodes"])),
        (with_module(edges(6)), invalid("GRAPH_TOO_LARGE", &["5 edges", "--max-edges"])),
        (with_module(vec![0; 1001]), invalid("GRAPH_TOO_LARGE", &["1001", "1000", "--max-graph-bytes"])),
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

#[tokio::test]
async fn broken_configurations_are_refused() {
    let cases = vec![
        (readable(vec![node(2, &[0, 1])]), invalid("NODE_NOT_CONFIGURABLE", &["configuration 0", "node 2"])),
        (
            readable(vec![node(3, &[0]), node(3, &[1])]),
            invalid("NODE_SET_TWICE", &["configuration 0", "node 3"]),
        ),
        (
            readable(vec![node(4, &[0, 6])]),
            invalid("VALUE_OUT_OF_RANGE", &["configuration 0, node 4", "6", "-1..5"]),
        ),
        (readable(vec![node(4, &[i32::MAX])]), invalid("VALUE_OUT_OF_RANGE", &["node 4", "2147483647"])),
        (readable(vec![node(4, &[i32::MIN])]), invalid("VALUE_OUT_OF_RANGE", &["node 4", "-2147483648"])),
        (readable(vec![node(4, &[-2])]), invalid("VALUE_OUT_OF_RANGE", &["node 4", "-2", "-1..5"])),
        (readable(vec![node(4, &[0; 7])]), invalid("WRONG_COUNT", &["node 4", "7", "6"])),
        (Configs::LayoutConfigs(LayoutConfigs::default()), invalid("CONFIGS_EMPTY", &["at least one"])),
        (packed(0, tables(), &[]), invalid("CONFIGS_EMPTY", &["at least one"])),
        (packed(2, tables(), &[0, 0, 1]), invalid("WRONG_COUNT", &["index matrix", "3", "4"])),
        (packed(1, vec![tables()[0].clone()], &[0]), invalid("WRONG_COUNT", &["tables", "1", "2"])),
        (
            packed(1, tables(), &[0, 2]),
            invalid("INDEX_OUT_OF_RANGE", &["configuration 0", "slot 1", "2 entries"]),
        ),
        (
            packed(1, vec![LayoutTable { entries: vec![0, 0, 117_649] }; 2], &[0, 0]),
            invalid("VALUE_OUT_OF_RANGE", &["117649", "117648", "slot 0"]),
        ),
        (
            packed(1, vec![LayoutTable { entries: vec![0, 0] }; 2], &[0, 0]),
            invalid("WRONG_COUNT", &["slot 0"]),
        ),
        (delta(vec![2], vec![0]), invalid("NODE_NOT_CONFIGURABLE", &["slot 2", "2 slots"])),
        (delta(vec![1], vec![7]), invalid("INDEX_OUT_OF_RANGE", &["entry 7", "slot 1"])),
        (delta(vec![1, 1], vec![0, 1]), invalid("NODE_SET_TWICE", &["slot 1"])),
        (delta(vec![1, 0], vec![0]), invalid("WRONG_COUNT", &["change_entries", "1", "2"])),
    ];
    let cases = cases.into_iter().map(|(configs, refusal)| (with_configs(configs), refusal)).collect();
    refuse_all(&TestServer::start().await, cases).await;
}

#[tokio::test]
async fn requests_that_do_not_fit_together_are_refused() {
    let server = TestServer::start().await;
    let kernel = Graph { task: Task::Tile.into(), ..graph_of(two_dots()) };
    let unknown = Refusal {
        code: Code::FailedPrecondition,
        reason: "GRAPH_NOT_CACHED",
        words: &["07070707", "send the graph"],
    };
    let not_found = |words| Refusal { code: Code::NotFound, reason: "MODEL_NOT_FOUND", words };
    let by_hash =
        |hash: Vec<u8>| Graph { source: Some(Source::GraphHash(hash.into())), ..Default::default() };
    let cases = vec![
        (with_graph(by_hash(vec![7; 32])), unknown),
        (with_graph(by_hash(vec![7; 31])), invalid("FIELD_INVALID", &["graph_hash", "31 bytes", "32 bytes"])),
        (with_graph(Graph::default()), invalid("FIELD_MISSING", &["graph.source", "hlo_module"])),
        (RankConfigsRequest { graph: None, ..sound() }, invalid("FIELD_MISSING", &["graph", "hlo_module"])),
        (
            RankConfigsRequest { configs: None, ..sound() },
            invalid("FIELD_MISSING", &["configs", "packed_tile_configs"]),
        ),
        (
            with_graph(Graph { task: 9, ..graph_of(two_dots()) }),
            invalid("FIELD_INVALID", &["graph.task", "9"]),
        ),
        (with_graph(kernel), invalid("GRAPH_TASK_MISMATCH", &["layout configurations", "tile"])),
        (with_model("no-such-model", 0), not_found(&["no-such-model", "layout-xla-cpu"])),
        (with_model("layout-xla-cpu", 999), not_found(&["version 999"])),
        (
            RankConfigsRequest { configs: Some(tiles()), ..with_model("layout-xla-cpu", 0) },
            invalid("MODEL_TASK_MISMATCH", &["layout-xla-cpu", "tile configurations"]),
        ),
    ];
    refuse_all(&server, cases).await;
}

#[tokio::test]
async fn tiles_for_a_layout_graph_that_is_cached_are_refused() {
    let server = TestServer::start().await;
    let cached = server.cost_model().await.rank_configs(sound()).await.unwrap().into_inner().graph_hash;
    let by_hash = Graph { source: Some(Source::GraphHash(cached)), ..Default::default() };
    let request = RankConfigsRequest { configs: Some(tiles()), ..with_graph(by_hash) };
    refuse(&server, request, &invalid("GRAPH_TASK_MISMATCH", &["tile configurations", "layout"])).await;
}

#[tokio::test]
async fn bytes_that_are_no_request_are_refused() {
    let server = TestServer::start().await;
    let mut client = tonic::client::Grpc::new(server.channel().await);
    client.ready().await.unwrap();
    // Field 1 of a request is a message; here it is a number.
    let wrong = PackedTileConfigs { config_count: 7, ..Default::default() };
    let path = "/hlorank.v1.CostModelService/RankConfigs".parse().unwrap();
    let codec = tonic_prost::ProstCodec::<PackedTileConfigs, RankConfigsResponse>::default();
    let status = client.unary(tonic::Request::new(wrong), path, codec).await.unwrap_err();
    check(&status, &invalid("REQUEST_MALFORMED", &["not a readable message"]));
    server.cost_model().await.rank_configs(sound()).await.expect("the server goes on");
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

#[tokio::test]
async fn opcodes_past_the_table_in_features_are_counted_in_a_warning() {
    let server = TestServer::start().await;
    let odd = GraphFeatures { node_opcode: vec![34, 121, 255].into(), ..features(3) };
    let unknown = GraphFeatures { node_opcode: vec![34, 0, 0].into(), ..features(3) };
    let mut answers = Vec::new();
    for features in [odd, unknown] {
        let request = RankConfigsRequest {
            configs: Some(readable(vec![node(0, &[1, 0])])),
            ..with_graph(graph_of_features(features))
        };
        answers.push(server.cost_model().await.rank_configs(request).await.unwrap().into_inner());
    }
    assert!(answers[0].warnings[0].message.starts_with("2 nodes"), "{:?}", answers[0].warnings);
    assert_eq!(answers[0].graph_hash, answers[1].graph_hash);
}

#[tokio::test]
async fn opcodes_that_the_table_does_not_know_are_counted_in_a_warning() {
    let server = TestServer::start().await;
    let module =
        single(vec![operation("topk", 1, &[]), operation("erf", 2, &[]), operation("dot", 3, &[1, 2])]);
    let request =
        RankConfigsRequest { configs: Some(readable(vec![node(2, &[1, 0])])), ..with_module(module) };
    let answer = server.cost_model().await.rank_configs(request).await.unwrap().into_inner();
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    assert_eq!(answer.warnings[0].reason, "UNKNOWN_OPCODES");
    assert!(answer.warnings[0].message.starts_with("2 nodes"), "{}", answer.warnings[0].message);
}
