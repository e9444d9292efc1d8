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

fn assert_refused(status: &Status, reason: &str, words: &[&str]) {
    assert_eq!(
        status.get_details_error_info().unwrap().reason,
        reason,
        "{}",
        status.message()
    );
    assert!(
        words.iter().all(|word| status.message().contains(word)),
        "{words:?} in {}",
        status.message()
    );
}

async fn refuse(subject: &Subject, request: RankConfigsRequest, reason: &str, words: &[&str]) {
    let status = subject
        .server
        .cost_model()
        .await
        .rank_configs(request)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
    assert_refused(&status, reason, words);
}

async fn accept(subject: &Subject, request: RankConfigsRequest) {
    subject
        .server
        .cost_model()
        .await
        .rank_configs(request)
        .await
        .unwrap();
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn a_graph_is_refused_with_the_place() {
    let flags = ["--max-nodes=3"];
    let subject = Subject::with(FeatureSetModel::of_loops("loops-sum"), &flags).await;
    let subject = &subject;
    accept(subject, with_graph(|_| ())).await;
    let columns = |count: usize| {
        move |graph: &mut FeatureGraph| graph.node_features = bytes(&vec![1.0; 2 * count]).into()
    };
    refuse(
        subject,
        with_graph(columns(2)),
        "FEATURES_INVALID",
        &["2 columns", "`loops`", "`loops-sum`", "3"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.node_features = vec![0; 22].into()),
        "FEATURES_INVALID",
        &["22"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.node_features = vec![0; 20].into()),
        "FEATURES_INVALID",
        &["5 values"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.node_features.clear()),
        "FEATURES_INVALID",
        &["0 values"],
    )
    .await;
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let values = [1.0, 2.0, 3.0, 4.0, value, 6.0];
        let request = with_graph(|graph| graph.node_features = bytes(&values).into());
        refuse(
            subject,
            request,
            "FEATURES_INVALID",
            &["feature 1 of node 1"],
        )
        .await;
    }
    refuse(
        subject,
        with_graph(|graph| graph.edges = vec![1, 0, 0, 1]),
        "GRAPH_CYCLE",
        &["depends on itself"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.edges = vec![1, 2]),
        "UNKNOWN_NODE",
        &["edge 0", "node 2"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.edges = vec![1]),
        "FEATURES_INVALID",
        &["edges", "expected 2"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.edges = [1, 0].repeat(13)),
        "TOO_MANY_EDGES",
        &["--max-nodes"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.nodes = 4),
        "TOO_MANY_NODES",
        &["--max-nodes"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.nodes = u32::MAX),
        "TOO_MANY_NODES",
        &["--max-nodes"],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.nodes = 0),
        "GRAPH_EMPTY",
        &[],
    )
    .await;
    refuse(
        subject,
        with_graph(|graph| graph.feature_set = "é".to_owned()),
        "FIELD_INVALID",
        &["ASCII"],
    )
    .await;
    accept(subject, with_graph(|_| ())).await;
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
async fn configurations_are_refused_with_the_place() {
    let flags = ["--max-configs=3", "--max-config-entries=8"];
    let subject = Subject::with(FeatureSetModel::of_loops("loops-sum"), &flags).await;
    let subject = &subject;
    accept(subject, with_configs(|_| ())).await;
    accept(subject, table(|_| ())).await;
    let short = |configs: &mut NodeFeatureConfigs| configs.features = vec![0; 12].into();
    refuse(
        subject,
        with_configs(short),
        "WRONG_COUNT",
        &["features (in bytes) has 12 entries, expected 16"],
    )
    .await;
    let wide = |configs: &mut NodeFeatureConfigs| {
        (configs.column_count, configs.features) = (3, vec![0; 24].into());
    };
    refuse(
        subject,
        with_configs(wide),
        "WRONG_COUNT",
        &["column_count is 3", "2 configuration columns"],
    )
    .await;
    refuse(
        subject,
        with_configs(|configs| configs.column_count = 0),
        "WRONG_COUNT",
        &["column_count is 0"],
    )
    .await;
    refuse(
        subject,
        with_configs(|configs| configs.config_count = 0),
        "CONFIGS_EMPTY",
        &[],
    )
    .await;
    for value in [f32::NAN, f32::INFINITY] {
        let values = bytes(&[1.0, 2.0, 3.0, value]);
        let dense = with_configs(|configs| configs.features = values.clone().into());
        refuse(
            subject,
            dense,
            "VALUE_OUT_OF_RANGE",
            &["configuration 0, node 1, column 1"],
        )
        .await;
        let rows = table(|configs| configs.rows = values.into());
        refuse(
            subject,
            rows,
            "VALUE_OUT_OF_RANGE",
            &["row 1 of the table, column 1"],
        )
        .await;
    }
    let outside = |configs: &mut NodeFeatureConfigs| {
        configs.row_indices = [0_u32, 2].map(u32::to_le_bytes).concat().into();
    };
    refuse(
        subject,
        table(outside),
        "INDEX_OUT_OF_RANGE",
        &["configuration 0", "slot 1", "2 entries"],
    )
    .await;
    refuse(
        subject,
        table(|configs| configs.rows = vec![0; 12].into()),
        "WRONG_COUNT",
        &["rows (in bytes)"],
    )
    .await;
    refuse(
        subject,
        table(|configs| configs.row_indices = vec![0; 7].into()),
        "WRONG_COUNT",
        &["row_indices"],
    )
    .await;
    let both = |configs: &mut NodeFeatureConfigs| configs.features = vec![0; 16].into();
    refuse(
        subject,
        table(both),
        "REQUEST_MALFORMED",
        &["one of both forms"],
    )
    .await;
    // The message claims more than it holds.
    refuse(
        subject,
        with_configs(|configs| configs.config_count = 4),
        "TOO_MANY_CONFIGS",
        &["--max-configs"],
    )
    .await;
    refuse(
        subject,
        with_configs(|configs| configs.config_count = u32::MAX),
        "TOO_MANY_CONFIGS",
        &[],
    )
    .await;
    let entries = with_configs(|configs| configs.config_count = 3);
    refuse(
        subject,
        entries,
        "TOO_MANY_CONFIG_ENTRIES",
        &["3 configurations of 4", "--max-config-entries"],
    )
    .await;
    accept(subject, with_configs(|_| ())).await;
}

#[tokio::test]
async fn graphs_and_configurations_of_other_tasks_are_refused() {
    let subject = Subject::new().await;
    let subject = &subject;
    let tiles = || packed_tiles(&tiles(&[[8, 8]]));
    refuse(
        subject,
        rank_request(sent(graph()), tiles()),
        "GRAPH_TASK_MISMATCH",
        &["tile", "feature-set"],
    )
    .await;
    let module = || Graph {
        task: Task::Tile.into(),
        ..graph_of_module(two_dots())
    };
    let columns = Configs::NodeFeatureConfigs(configs());
    refuse(
        subject,
        rank_request(module(), columns.clone()),
        "GRAPH_TASK_MISMATCH",
        &["feature-set", "tile"],
    )
    .await;
    let module = Graph {
        task: Task::FeatureSet.into(),
        ..module()
    };
    refuse(
        subject,
        rank_request(module, columns.clone()),
        "GRAPH_TASK_MISMATCH",
        &["feature_graph"],
    )
    .await;
    let layout = Graph {
        task: Task::Layout.into(),
        ..sent(graph())
    };
    refuse(
        subject,
        rank_request(layout, columns),
        "GRAPH_TASK_MISMATCH",
        &["layout", "feature_graph"],
    )
    .await;
    let explained = RankConfigsRequest {
        explain_top: 1,
        ..with_configs(|_| ())
    };
    refuse(subject, explained, "EXPLAIN_UNSUPPORTED", &["explain_top"]).await;
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
    assert_eq!(status.code(), Code::InvalidArgument);
    assert_refused(&status, "SOURCE_UNSUPPORTED", &["source"]);
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
