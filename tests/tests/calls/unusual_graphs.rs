//! Graphs that are unusual but valid: the largest numbers, opcodes that the table does not know, modules after optimization.

use hlorank_graph::is_made_by_optimization;
use hlorank_tests::prelude::*;

const FEATURE_BYTES: usize = FEATURES * size_of::<f32>();

fn features(opcodes: &[u8]) -> GraphFeatures {
    GraphFeatures {
        node_opcode: opcodes.to_vec().into(),
        node_feat: vec![0; opcodes.len() * FEATURE_BYTES].into(),
        ..Default::default()
    }
}

fn graph_of_features(features: GraphFeatures) -> Graph {
    graph_of(Source::Features(features))
}

/// Returns a request for a layout of one node of a graph, or for that of the compiler.
fn ranked(graph: Graph, node: Option<u32>) -> RankConfigsRequest {
    let tensors = vec![TensorLayout {
        minor_to_major: vec![1, 0],
    }];
    let nodes = node.map(|node| NodeLayout { node, tensors });
    let configs = vec![LayoutConfig {
        nodes: nodes.into_iter().collect(),
    }];
    rank_request(graph, Configs::LayoutConfigs(LayoutConfigs { configs }))
}

/// Returns features in which these columns of node 1 have a value.
fn with_columns(columns: &[usize], value: f32) -> Graph {
    let zero = features(&[34, 34]);
    let mut bytes = zero.node_feat.to_vec();
    for column in columns {
        bytes[FEATURE_BYTES + 4 * column..][..4].copy_from_slice(&value.to_le_bytes());
    }
    graph_of_features(GraphFeatures {
        node_feat: bytes.into(),
        ..zero
    })
}

/// Returns a dot whose output and operands have these dimensions.
fn dot_of(dimensions: &[i64]) -> Graph {
    let mut instructions = vec![
        operation("parameter", 1, &[]),
        operation("parameter", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ];
    for instruction in &mut instructions {
        instruction.shape.as_mut().unwrap().dimensions = dimensions.to_vec();
    }
    graph_of_module(single(instructions))
}

/// Every model must score what the limits accept, or the limits are too wide.
#[tokio::test]
async fn the_largest_numbers_that_are_accepted_are_scored() {
    const LARGEST: f32 = 9_223_372_036_854_775_808.0;
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let is_number = |column: &usize| !matches!(column, 0 | 2..27 | 133);
    let others: Vec<usize> = (0..140).filter(is_number).collect();
    let root = 1 << 21;
    let graphs = [
        with_columns(&others, LARGEST),
        with_columns(&others, -LARGEST),
        with_columns(&[21], LARGEST),
        dot_of(&[i64::MAX]),
        dot_of(&[root, root, root]),
        dot_of(&[1448; 6]),
    ];
    for graph in graphs {
        for model in ["layout-xla-cpu", "layout-xla-cpu-sage"] {
            let request = ranked(graph.clone(), None).with_model(model);
            let answer = server.rank(request).await.unwrap();
            assert!(answer.ranking_scores[0].is_finite(), "{model}");
        }
    }
}

#[tokio::test]
async fn opcodes_that_the_table_does_not_know_are_counted_in_a_warning() {
    let server = TestServer::start().await;
    let module = single(vec![
        operation("topk", 1, &[]),
        operation("erf", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ]);
    let mut hashes = Vec::new();
    for (graph, dot) in [
        (graph_of_features(features(&[34, 121, 255])), 0),
        (graph_of_features(features(&[34, 0, 0])), 0),
        (graph_of_module(module), 2),
    ] {
        let answer = server.rank(ranked(graph, Some(dot))).await.unwrap();
        let [warning] = &answer.warnings[..] else {
            panic!("{:?}", answer.warnings)
        };
        assert_eq!(warning.reason, "UNKNOWN_OPCODES");
        assert!(warning.message.starts_with("2 nodes"), "{warning:?}");
        hashes.push(answer.graph_hash);
    }
    assert_eq!(hashes[0], hashes[1]);
}

#[tokio::test]
async fn a_kernel_sent_as_arrays_without_operands_has_a_warning_that_its_loops_are_guessed() {
    let server = TestServer::start().await;
    let client = server.client().await;
    // One node, which is the root and has neither operands nor further dimensions.
    for (operands, expected) in [(vec![], &["LOOPS_GUESSED"][..]), (vec![0, 1, 0, 0, 0], &[])] {
        let graph = kernel_graph(graph_of_features(GraphFeatures {
            operands,
            ..features(&[34])
        }));
        let graph = GraphHandle::of_message(graph).unwrap();
        let warnings = client.put_graph(&graph).await.unwrap().warnings;
        let found: Vec<&str> = warnings.iter().map(|each| &*each.reason).collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_module_after_optimization_has_a_warning_that_says_how_to_dump_before_it() {
    let server = TestServer::start().await;
    let client = server.client().await;
    for program in ["cnn_train", "control_flow_mix", "mlp_train"] {
        // Kernels are read from modules after optimization.
        for (stage, task, count) in [
            ("before_opt", Task::Layout, 0),
            ("cpu_after_opt", Task::Layout, 1),
            ("cpu_after_opt", Task::Tile, 0),
        ] {
            let file = |form: &str| fixture(&format!("hlo/{program}.{stage}.{form}"));
            let text = fs::read_to_string(file("hlo.txt")).unwrap();
            let module = fs::read(file("hlo_module.pb")).unwrap();
            for graph in [
                GraphHandle::hlo_text(text, task, vec![]),
                GraphHandle::hlo_module(module, task, vec![]),
            ] {
                let mut warnings = client.put_graph(&graph).await.unwrap().warnings;
                warnings.retain(|warning| warning.reason == "OPTIMIZED_MODULE");
                assert_eq!(warnings.len(), count, "{program}.{stage}: {warnings:?}");
                for warning in warnings {
                    says!(warning.message, "before_optimizations.txt");
                }
            }
        }
    }
}

#[test]
fn measured_programs_are_modules_before_optimization() {
    for measured in measured_graphs_of(Task::Layout) {
        let opcodes = measured.graph.opcodes();
        let is_optimized = opcodes
            .iter()
            .any(|&opcode| is_made_by_optimization(opcode));
        assert!(!is_optimized, "{}", measured.name);
    }
}
