use hlorank_proto::v1::{FeatureGraph, SuggestionSource, Task};
use hlorank_tests::prelude::*;

use super::Subject;

/// Two nodes with an edge.
fn graph() -> FeatureGraph {
    let node_features = bytes(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    FeatureGraph {
        feature_set: "loops".to_owned(),
        nodes: 2,
        node_features: node_features.into(),
        edges: vec![1, 0],
        ..FeatureGraph::default()
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect()
}

fn sent(graph: FeatureGraph) -> Graph {
    graph_of(Source::FeatureGraph(graph))
}

/// One configuration of two nodes.
fn configs() -> NodeFeatureConfigs {
    let features = bytes(&[1.0, 2.0, 3.0, 4.0]);
    NodeFeatureConfigs {
        config_count: 1,
        column_count: 2,
        features: features.into(),
        ..Default::default()
    }
}

fn with_graph(change: impl FnOnce(&mut FeatureGraph)) -> RankConfigsRequest {
    let mut graph = graph();
    change(&mut graph);
    rank_request(sent(graph), Configs::NodeFeatureConfigs(configs()))
}

fn with_configs(change: impl FnOnce(&mut NodeFeatureConfigs)) -> RankConfigsRequest {
    let mut configs = configs();
    change(&mut configs);
    rank_request(sent(graph()), Configs::NodeFeatureConfigs(configs))
}

fn table(change: impl FnOnce(&mut NodeFeatureConfigs)) -> RankConfigsRequest {
    with_configs(|configs| {
        (configs.features, configs.rows) = (Vec::new().into(), bytes(&[1.0, 2.0, 3.0, 4.0]).into());
        configs.row_indices = [0_u32, 1].map(u32::to_le_bytes).concat().into();
        change(configs);
    })
}

#[tokio::test]
async fn a_graph_is_refused_with_the_place() {
    let flags = ["--max-nodes=3"];
    let subject = Subject::with(FeatureSetModel::of_loops("loops-sum"), &flags).await;
    let columns = |count: usize| {
        move |graph: &mut FeatureGraph| graph.node_features = bytes(&vec![1.0; 2 * count]).into()
    };
    let mut cases = vec![
        (
            with_graph(columns(2)),
            invalid(
                "FEATURES_INVALID",
                &["2 columns", "`loops`", "`loops-sum`", "3"],
            ),
        ),
        (
            with_graph(|graph| graph.node_features = vec![0; 22].into()),
            invalid("FEATURES_INVALID", &["22"]),
        ),
        (
            with_graph(|graph| graph.node_features = vec![0; 20].into()),
            invalid("FEATURES_INVALID", &["5 values"]),
        ),
        (
            with_graph(|graph| graph.node_features.clear()),
            invalid("FEATURES_INVALID", &["0 values"]),
        ),
    ];
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let values = [1.0, 2.0, 3.0, 4.0, value, 6.0];
        let request = with_graph(|graph| graph.node_features = bytes(&values).into());
        cases.push((
            request,
            invalid("FEATURES_INVALID", &["feature 1 of node 1"]),
        ));
    }
    cases.extend([
        (
            with_graph(|graph| graph.edges = vec![1, 0, 0, 1]),
            invalid("GRAPH_CYCLE", &["depends on itself"]),
        ),
        (
            with_graph(|graph| graph.edges = vec![1, 2]),
            invalid("UNKNOWN_NODE", &["edge 0", "node 2"]),
        ),
        (
            with_graph(|graph| graph.edges = vec![1]),
            invalid("FEATURES_INVALID", &["edges", "expected 2"]),
        ),
        (
            with_graph(|graph| graph.edges = [1, 0].repeat(13)),
            invalid("TOO_MANY_EDGES", &["--max-nodes"]),
        ),
        (
            with_graph(|graph| graph.nodes = 4),
            invalid("TOO_MANY_NODES", &["--max-nodes"]),
        ),
        (
            with_graph(|graph| graph.nodes = u32::MAX),
            invalid("TOO_MANY_NODES", &["--max-nodes"]),
        ),
        (
            with_graph(|graph| graph.nodes = 0),
            invalid("GRAPH_EMPTY", &[]),
        ),
        (
            with_graph(|graph| graph.feature_set = "é".to_owned()),
            invalid("FIELD_INVALID", &["ASCII"]),
        ),
    ]);
    subject.server.refuses(&with_graph(|_| ()), cases).await;
}

#[tokio::test]
async fn configurations_are_refused_with_the_place() {
    let flags = ["--max-configs=3", "--max-config-entries=8"];
    let subject = Subject::with(FeatureSetModel::of_loops("loops-sum"), &flags).await;
    let short = |configs: &mut NodeFeatureConfigs| configs.features = vec![0; 12].into();
    let mut cases = vec![(
        with_configs(short),
        invalid(
            "WRONG_COUNT",
            &["features (in bytes) has 12 entries, expected 16"],
        ),
    )];
    let wide = |configs: &mut NodeFeatureConfigs| {
        (configs.column_count, configs.features) = (3, vec![0; 24].into());
    };
    cases.extend([
        (
            with_configs(wide),
            invalid(
                "WRONG_COUNT",
                &["column_count is 3", "2 configuration columns"],
            ),
        ),
        (
            with_configs(|configs| configs.column_count = 0),
            invalid("WRONG_COUNT", &["column_count is 0"]),
        ),
        (
            with_configs(|configs| configs.config_count = 0),
            invalid("CONFIGS_EMPTY", &[]),
        ),
    ]);
    for value in [f32::NAN, f32::INFINITY] {
        let values = bytes(&[1.0, 2.0, 3.0, value]);
        let dense = with_configs(|configs| configs.features = values.clone().into());
        cases.push((
            dense,
            invalid("VALUE_OUT_OF_RANGE", &["configuration 0, node 1, column 1"]),
        ));
        let rows = table(|configs| configs.rows = values.into());
        cases.push((
            rows,
            invalid("VALUE_OUT_OF_RANGE", &["row 1 of the table, column 1"]),
        ));
    }
    let outside = |configs: &mut NodeFeatureConfigs| {
        configs.row_indices = [0_u32, 2].map(u32::to_le_bytes).concat().into();
    };
    cases.extend([
        (
            table(outside),
            invalid(
                "INDEX_OUT_OF_RANGE",
                &["configuration 0", "slot 1", "2 entries"],
            ),
        ),
        (
            table(|configs| configs.rows = vec![0; 12].into()),
            invalid("WRONG_COUNT", &["rows (in bytes)"]),
        ),
        (
            table(|configs| configs.row_indices = vec![0; 7].into()),
            invalid("WRONG_COUNT", &["row_indices"]),
        ),
    ]);
    let both = |configs: &mut NodeFeatureConfigs| configs.features = vec![0; 16].into();
    cases.push((
        table(both),
        invalid("REQUEST_MALFORMED", &["one of both forms"]),
    ));

    // The message claims more than it holds.
    cases.extend([
        (
            with_configs(|configs| configs.config_count = 4),
            invalid("TOO_MANY_CONFIGS", &["--max-configs"]),
        ),
        (
            with_configs(|configs| configs.config_count = u32::MAX),
            invalid("TOO_MANY_CONFIGS", &[]),
        ),
    ]);
    let entries = with_configs(|configs| configs.config_count = 3);
    cases.push((
        entries,
        invalid(
            "TOO_MANY_CONFIG_ENTRIES",
            &["3 configurations of 4", "--max-config-entries"],
        ),
    ));

    subject.server.rank(table(|_| ())).await.unwrap();
    subject.server.refuses(&with_configs(|_| ()), cases).await;
}

#[tokio::test]
async fn graphs_and_configurations_of_other_tasks_are_refused() {
    let subject = Subject::new().await;
    let tiles = || packed_tiles(&tiles(&[[8, 8]]));
    let mut cases = vec![(
        rank_request(sent(graph()), tiles()),
        invalid("GRAPH_TASK_MISMATCH", &["tile", "feature-set"]),
    )];
    let module = || Graph {
        task: Task::Tile.into(),
        ..graph_of_module(two_dots())
    };
    let columns = Configs::NodeFeatureConfigs(configs());
    cases.push((
        rank_request(module(), columns.clone()),
        invalid("GRAPH_TASK_MISMATCH", &["feature-set", "tile"]),
    ));

    let module = Graph {
        task: Task::FeatureSet.into(),
        ..module()
    };
    cases.push((
        rank_request(module, columns.clone()),
        invalid("GRAPH_TASK_MISMATCH", &["feature_graph"]),
    ));

    let layout = Graph {
        task: Task::Layout.into(),
        ..sent(graph())
    };
    cases.push((
        rank_request(layout, columns),
        invalid("GRAPH_TASK_MISMATCH", &["layout", "feature_graph"]),
    ));

    let explained = RankConfigsRequest {
        explain_top: 1,
        ..with_configs(|_| ())
    };
    cases.extend([(explained, invalid("EXPLAIN_UNSUPPORTED", &["explain_top"]))]);

    subject.server.refuses(&with_graph(|_| ()), cases).await;
    let combined = SuggestConfigsRequest {
        graph: Some(sent(graph())),
        batch: Some(config_batch(Configs::NodeFeatureConfigs(configs()))),
        source: SuggestionSource::Segments.into(),
        ..SuggestConfigsRequest::default()
    };
    let status = subject
        .server
        .cost_model()
        .await
        .suggest_configs(combined)
        .await
        .unwrap_err();
    invalid("SOURCE_UNSUPPORTED", &["source"]).check(&status);
}

#[tokio::test]
async fn a_batch_of_another_task_in_a_stream_is_named() {
    let subject = Subject::new().await;
    let limits = Limits::default();
    let features = vec![1.0; 6];
    let graph =
        hlorank_graph::FeatureGraph::new("loops".to_owned(), 2, features, vec![[1, 0]], &limits)
            .unwrap();
    let handle = GraphHandle::feature_graph(&graph);
    let mut stream = subject
        .client
        .rank_stream(&hlorank_client::StreamRequest::new(&handle))
        .await
        .unwrap();
    let tiles: TileBatch = tiles(&[[8, 8]]);
    stream.send(&Configurations::Tile(tiles)).await.unwrap();
    let error = stream.scores().await.unwrap_err();
    assert_eq!(
        error.refusal().unwrap().reason(),
        Some("GRAPH_TASK_MISMATCH"),
        "{error}"
    );
}
