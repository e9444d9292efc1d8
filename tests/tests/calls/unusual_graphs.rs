//! Graphs that are unusual but valid: the largest numbers, opcodes that the table does not know, modules after optimization.

use hlorank_graph::is_made_by_optimization;
use hlorank_proto::v1::{Task as WireTask, Warning};
use hlorank_tests::prelude::*;

fn features(nodes: usize) -> GraphFeatures {
    GraphFeatures {
        node_opcode: vec![34; nodes].into(),
        node_feat: vec![0; nodes * 560].into(),
        ..Default::default()
    }
}

/// Returns a request for a layout of one node of a graph, or for that of the compiler.
fn ranked(graph: Graph, node: Option<u32>) -> RankConfigsRequest {
    let nodes = node.map(|node| NodeLayout {
        node,
        tensors: vec![TensorLayout {
            minor_to_major: vec![1, 0],
        }],
    });
    let configs = vec![LayoutConfig {
        nodes: nodes.into_iter().collect(),
    }];
    rank_request(graph, Configs::LayoutConfigs(LayoutConfigs { configs }))
}

/// Returns features in which these columns of node 1 have a value.
fn with_columns(columns: &[usize], value: f32) -> Graph {
    let large = features(2);
    let mut bytes = large.node_feat.to_vec();
    for column in columns {
        bytes[560 + 4 * column..][..4].copy_from_slice(&value.to_le_bytes());
    }
    graph_of(Source::Features(GraphFeatures {
        node_feat: bytes.into(),
        ..large
    }))
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

/// Every model must score what the limits accept, or the limits are too wide.
#[tokio::test]
async fn the_largest_numbers_that_are_accepted_are_scored() {
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let is_number = |column: &usize| !matches!(column, 0 | 2..27 | 133);
    let others: Vec<usize> = (0..140).filter(is_number).collect();
    let [max, root] = [i64::MAX, 1 << 21];
    let graphs = [
        with_columns(&others, LARGEST),
        with_columns(&others, -LARGEST),
        with_columns(&[21], LARGEST),
        graph_of_module(dot_of(&[max])),
        graph_of_module(dot_of(&[root, root, root])),
        graph_of_module(dot_of(&[1448; 6])),
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
    let of_opcodes = |opcodes: Vec<u8>| {
        graph_of(Source::Features(GraphFeatures {
            node_opcode: opcodes.into(),
            ..features(3)
        }))
    };
    let module = single(vec![
        operation("topk", 1, &[]),
        operation("erf", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ]);
    let mut hashes = Vec::new();
    for (graph, dot) in [
        (of_opcodes(vec![34, 121, 255]), 0),
        (of_opcodes(vec![34, 0, 0]), 0),
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

const WARNING: &str = "OPTIMIZED_MODULE";

/// Programs, each before and after XLA:CPU's optimization.
const PROGRAMS: [&str; 3] = ["cnn_train", "control_flow_mix", "mlp_train"];

/// Returns the warnings about modules after optimization.
async fn warnings(server: &TestServer, graph: Graph, task: WireTask) -> Vec<String> {
    let warnings = all_warnings(server, graph, task).await.into_iter();
    let warnings = warnings.filter(|warning| warning.reason == WARNING);
    warnings.map(|warning| warning.message).collect()
}

/// Returns the warnings for a graph whose layouts or tiles are chosen.
async fn all_warnings(server: &TestServer, graph: Graph, task: WireTask) -> Vec<Warning> {
    let graph = Some(Graph {
        task: task.into(),
        ..graph
    });
    let answer = server
        .cost_model()
        .await
        .put_graph(PutGraphRequest { graph })
        .await
        .unwrap()
        .into_inner();
    answer.warnings
}

fn text(name: &str) -> Graph {
    graph_of_text(fs::read_to_string(fixture(&format!("hlo/{name}.hlo.txt"))).unwrap())
}

fn module(name: &str) -> Graph {
    graph_of_module(fs::read(fixture(&format!("hlo/{name}.hlo_module.pb"))).unwrap())
}

#[tokio::test]
async fn a_dump_after_optimization_has_a_warning_that_says_how_to_dump_before_it() {
    let server = TestServer::start().await;
    for program in PROGRAMS {
        for form in [text, module] {
            let found = warnings(
                &server,
                form(&format!("{program}.cpu_after_opt")),
                WireTask::Layout,
            )
            .await;
            assert_eq!(found.len(), 1, "{program}: {found:?}");
            says!(found[0], "before_optimizations.txt");
        }
    }
}

#[tokio::test]
async fn a_kernel_sent_as_arrays_without_operands_has_a_warning_that_its_loops_are_guessed() {
    let server = TestServer::start().await;
    // One node, which is the root and has neither operands nor further dimensions.
    for (operands, reasons) in [(vec![], &["LOOPS_GUESSED"][..]), (vec![0, 1, 0, 0, 0], &[])] {
        let graph = graph_of(Source::Features(GraphFeatures {
            operands,
            ..features(1)
        }));
        let found = all_warnings(&server, graph, WireTask::Tile).await;
        let found: Vec<_> = found
            .iter()
            .map(|warning| warning.reason.as_str())
            .collect();
        assert_eq!(found, reasons);
    }
}

#[tokio::test]
async fn modules_before_optimization_and_kernels_have_no_such_warning() {
    let server = TestServer::start().await;
    for program in PROGRAMS {
        for form in [text, module] {
            let found = warnings(
                &server,
                form(&format!("{program}.before_opt")),
                WireTask::Layout,
            )
            .await;
            assert!(found.is_empty(), "{program}: {found:?}");
        }
        let found = warnings(
            &server,
            text(&format!("{program}.cpu_after_opt")),
            WireTask::Tile,
        )
        .await;
        assert!(found.is_empty(), "{program}: {found:?}");
    }
}

#[test]
fn measured_programs_are_modules_before_optimization() {
    for name in [
        "layout_random_window_nchw_train.pb",
        "layout_random_window_reversed.pb",
    ] {
        let path = fixture("measured").join(name);
        for measured in GraphFile::read(&path, Task::Layout, &Limits::default())
            .unwrap()
            .graphs
        {
            let optimized = measured
                .graph
                .opcodes()
                .iter()
                .filter(|opcode| is_made_by_optimization(**opcode));
            assert_eq!(optimized.count(), 0, "{name}");
        }
    }
}
