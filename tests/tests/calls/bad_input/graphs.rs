//! Invalid graphs, and unusual graphs.

use hlorank_tests::prelude::*;

use super::request::{features, graph_of_features, node, readable, sound, with_graph, with_module};

#[tokio::test]
async fn broken_graphs_are_refused() {
    let mut truncated = two_dots();
    truncated.truncate(truncated.len() - 3);
    let callee = |id| hlorank_proto::xla::HloInstructionProto {
        called_computation_ids: vec![id],
        ..instruction(1, &[])
    };
    let cases = vec![
        (
            with_module(truncated),
            invalid("HLO_MALFORMED", &["the module", "HloModuleProto"]),
        ),
        (
            with_module(b"not a module at all".to_vec()),
            invalid("HLO_MALFORMED", &["HloModuleProto"]),
        ),
        (
            with_module(vec![]),
            invalid("GRAPH_EMPTY", &["no instructions"]),
        ),
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
        (
            with_module(single(vec![callee(5)])),
            invalid("UNKNOWN_CALLEE", &["node 0", "computation id 5"]),
        ),
        (
            with_module(single(vec![instruction(1, &[2]), instruction(2, &[1])])),
            invalid("GRAPH_CYCLE", &["node"]),
        ),
        (
            with_module(single(vec![instruction(1, &[])])),
            invalid("NOTHING_TO_CONFIGURE", &["convolution"]),
        ),
    ];
    TestServer::start().await.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn broken_texts_are_refused_with_line_and_column() {
    let entry = |lines: &str| {
        with_graph(graph_of_text(format!(
            "HloModule m\n\nENTRY e {{\n{lines}\n}}\n"
        )))
    };
    let cases = vec![
        (
            with_graph(graph_of_text("")),
            invalid("HLO_MALFORMED", &["line 1, column 1", "`HloModule`"]),
        ),
        (
            with_graph(graph_of_text("HloModule m")),
            invalid("GRAPH_EMPTY", &["no instructions"]),
        ),
        (
            entry("  p = f32[2 parameter(0)"),
            invalid("HLO_MALFORMED", &["line 4, column 13", "`parameter(0)`"]),
        ),
        (
            entry("  n = f32[2] negate(p)"),
            invalid("UNKNOWN_OPERAND", &["line 4, column 21", "`p`"]),
        ),
        (
            entry("  c = f32[2] call(), to_apply=f"),
            invalid("UNKNOWN_CALLEE", &["line 4, column 31", "`f`"]),
        ),
        (
            entry("  p = f32[] parameter(0)\n  p = f32[] parameter(1)"),
            invalid("DUPLICATE_ID", &["line 5, column 3", "`p`"]),
        ),
        (
            entry("  p = f32[] parameter(0)"),
            invalid("NOTHING_TO_CONFIGURE", &["convolution"]),
        ),
    ];
    TestServer::start().await.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn broken_features_are_refused() {
    let mut not_finite = features(2);
    let mut bytes = not_finite.node_feat.to_vec();
    bytes[560..564].copy_from_slice(&f32::INFINITY.to_le_bytes());
    not_finite.node_feat = bytes.into();
    let cases = vec![
        (
            with_graph(graph_of_features(features(0))),
            invalid("GRAPH_EMPTY", &["no instructions"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures {
                node_feat: vec![0; 559].into(),
                ..features(1)
            })),
            invalid("FEATURES_INVALID", &["node_feat", "559", "560"]),
        ),
        (
            with_graph(graph_of_features(not_finite)),
            invalid("FEATURES_INVALID", &["feature 0 of node 1"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures {
                edge_index: vec![1],
                ..features(2)
            })),
            invalid("FEATURES_INVALID", &["edge_index"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures {
                edge_index: vec![1, 2],
                ..features(2)
            })),
            invalid("UNKNOWN_NODE", &["node 2", "2 nodes"]),
        ),
        (
            with_graph(graph_of_features(GraphFeatures {
                pad_value: 3,
                ..features(2)
            })),
            invalid("FEATURES_INVALID", &["3", "-1"]),
        ),
        (
            with_graph(Graph {
                configurable_nodes: vec![2],
                ..graph_of_features(features(2))
            }),
            invalid("CONFIGURABLE_NODES_INVALID", &["node 2", "2 nodes"]),
        ),
        (
            with_graph(Graph {
                configurable_nodes: vec![1, 1],
                ..graph_of_features(features(2))
            }),
            invalid("CONFIGURABLE_NODES_INVALID", &["node 1", "twice"]),
        ),
    ];
    TestServer::start().await.refuses(&sound(), cases).await;
}

/// Returns features in which these columns of node 1 have a value.
fn with_columns(columns: &[usize], value: f32) -> Graph {
    let large = features(2);
    let mut bytes = large.node_feat.to_vec();
    for column in columns {
        bytes[560 + 4 * column..][..4].copy_from_slice(&value.to_le_bytes());
    }
    graph_of_features(GraphFeatures {
        node_feat: bytes.into(),
        ..large
    })
}

/// Returns a dot whose output and operands have these dimensions.
fn dot_of(dimensions: &[i64]) -> Vec<u8> {
    let mut instructions = vec![
        operation("parameter", 1, &[]),
        operation("parameter", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ];
    for instruction in &mut instructions {
        instruction.shape.as_mut().unwrap().dimensions = dimensions.to_vec();
    }
    single(instructions)
}

const LARGEST: f32 = 9_223_372_036_854_775_808.0;

#[tokio::test]
async fn numbers_that_no_module_has_are_refused() {
    let server = TestServer::start().await;
    let [max, quarter] = [i64::MAX, 1 << 21];
    let text = |shape: &str| {
        let lines = format!("a = {shape} parameter(0)\n  b = {shape} dot(a, a)");
        with_graph(graph_of_text(format!(
            "HloModule m\n\nENTRY e {{\n  {lines}\n}}\n"
        )))
    };
    let cases = vec![
        (
            with_graph(with_columns(&[40], 1e19)),
            invalid("FEATURES_INVALID", &["feature 40 of node 1", "2^63"]),
        ),
        (
            with_graph(with_columns(&[27], -1e30)),
            invalid("FEATURES_INVALID", &["feature 27 of node 1"]),
        ),
        (
            with_graph(with_columns(&[21, 22], LARGEST)),
            invalid("TENSOR_TOO_LARGE", &["node 1", "2^63 elements"]),
        ),
        (
            with_graph(with_columns(&[21, 22, 23, 24, 25, 26], 1e12)),
            invalid("TENSOR_TOO_LARGE", &["node 1"]),
        ),
        (
            with_module(dot_of(&[max, max])),
            invalid("TENSOR_TOO_LARGE", &["node 0"]),
        ),
        (
            with_module(dot_of(&[quarter, quarter, quarter, 2])),
            invalid("TENSOR_TOO_LARGE", &["node 0"]),
        ),
        (
            text("f32[9223372036854775807,9223372036854775807]"),
            invalid("TENSOR_TOO_LARGE", &["node 0"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
    let metrics = server.scrape().await;
    assert_eq!(
        metrics.value(
            "hlorank_errors_total",
            &[("reason", "MODEL_OUTPUT_INVALID")]
        ),
        0.0
    );
}

/// Every model must score what the limits accept, or the limits are too wide.
#[tokio::test]
async fn the_largest_numbers_that_are_accepted_are_scored() {
    let server = TestServer::start().await;
    let is_number = |column: &usize| !matches!(column, 0 | 2..27 | 133);
    let others: Vec<usize> = (0..140).filter(is_number).collect();
    let [max, root] = [i64::MAX, 1 << 21];
    let graphs = [
        with_graph(with_columns(&others, LARGEST)),
        with_graph(with_columns(&others, -LARGEST)),
        with_graph(with_columns(&[21], LARGEST)),
        with_module(dot_of(&[max])),
        with_module(dot_of(&[root, root, root])),
        with_module(dot_of(&[1448; 6])),
    ];
    for request in graphs {
        for model in ["layout-xla-cpu", "layout-xla-cpu-sage"] {
            let request = request
                .clone()
                .with_model(model)
                .with_configs(readable(vec![]));
            let answer = server.rank(request).await.unwrap();
            assert!(answer.ranking_scores[0].is_finite(), "{model}");
        }
    }
}

#[tokio::test]
async fn opcodes_past_the_table_in_features_are_counted_in_a_warning() {
    let server = TestServer::start().await;
    let odd = GraphFeatures {
        node_opcode: vec![34, 121, 255].into(),
        ..features(3)
    };
    let unknown = GraphFeatures {
        node_opcode: vec![34, 0, 0].into(),
        ..features(3)
    };
    let mut answers = Vec::new();
    for features in [odd, unknown] {
        let configs = readable(vec![node(0, &[1, 0])]);
        let request = with_graph(graph_of_features(features)).with_configs(configs);
        answers.push(server.rank(request).await.unwrap());
    }
    assert!(
        answers[0].warnings[0].message.starts_with("2 nodes"),
        "{:?}",
        answers[0].warnings
    );
    assert_eq!(answers[0].graph_hash, answers[1].graph_hash);
}

#[tokio::test]
async fn opcodes_that_the_table_does_not_know_are_counted_in_a_warning() {
    let server = TestServer::start().await;
    let module = single(vec![
        operation("topk", 1, &[]),
        operation("erf", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ]);
    let request = with_module(module).with_configs(readable(vec![node(2, &[1, 0])]));
    let answer = server.rank(request).await.unwrap();
    assert_eq!(answer.warnings.len(), 1, "{:?}", answer.warnings);
    assert_eq!(answer.warnings[0].reason, "UNKNOWN_OPCODES");
    assert!(
        answer.warnings[0].message.starts_with("2 nodes"),
        "{}",
        answer.warnings[0].message
    );
}

/// Returns features of a parameter, a constant and a dot of both, with edges in a form of the caller's choice.
fn edges_of_a_dot(edges: &[u32]) -> Graph {
    let node_opcode = vec![63, 24, 34].into();
    graph_of_features(GraphFeatures {
        node_opcode,
        edge_index: edges.to_vec(),
        ..features(3)
    })
}

#[tokio::test]
async fn arrays_that_no_module_has_are_refused() {
    let server = TestServer::start().await;
    let cases = vec![
        (
            with_graph(edges_of_a_dot(&[0, 2, 1, 2])),
            invalid(
                "FEATURES_INVALID",
                &["node 0, parameter, consumes node 2", "[m, 2]"],
            ),
        ),
        // The two rows of [2, m] edges, read as pairs.
        (
            with_graph(edges_of_a_dot(&[2, 2, 0, 1])),
            invalid("GRAPH_CYCLE", &["node 2"]),
        ),
        (
            with_graph(with_columns(&[22], -8.0)),
            invalid("FEATURES_INVALID", &["feature 22 of node 1", "-8"]),
        ),
        (
            with_graph(with_columns(&[13], 2.0)),
            invalid("FEATURES_INVALID", &["feature 13", "0 or 1"]),
        ),
    ];
    server.refuses(&sound(), cases).await;
}

#[tokio::test]
async fn modules_that_xla_refuses_are_refused_as_proto_and_text() {
    let server = TestServer::start().await;
    let mut negative = vec![operation("parameter", 1, &[]), operation("dot", 2, &[1, 1])];
    negative[1].shape.as_mut().unwrap().dimensions[0] = -8;
    let text = |line: &str| {
        with_graph(graph_of_text(format!(
            "HloModule m\n\nENTRY e {{\n  a = f32[8,16] parameter(0)\n  {line}\n}}\n"
        )))
    };
    let cases = vec![
        (
            with_module(single(negative)),
            invalid(
                "MODULE_INVALID",
                &[
                    "node 1 (`instruction.2`, dot) of computation",
                    "size -8",
                    "XLA refuses",
                ],
            ),
        ),
        (
            with_module(single(vec![
                operation("parameter", 1, &[]),
                operation("dot", 2, &[1]),
            ])),
            invalid("MODULE_INVALID", &["1 operands, but takes at least 2"]),
        ),
        (
            text("r = f32[9] add(a)"),
            invalid(
                "MODULE_INVALID",
                &["line 5, column 3", "`r` (add)", "1 operands"],
            ),
        ),
    ];
    server.refuses(&sound(), cases).await;
}
