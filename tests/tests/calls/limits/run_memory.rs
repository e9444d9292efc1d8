//! A graph whose runs would take too much memory is refused before anything is queued.

use hlorank_server::{model::Model, runtime::Runtime};
use hlorank_tests::prelude::*;

const HALIDE: &str = "halide-adams2019";

fn halide_chain(nodes: usize) -> (GraphHandle, Configurations) {
    let model = Model::load(
        &repository("models/registry/halide-adams2019/1"),
        &Runtime::load(&onnxruntime()).unwrap(),
        1,
    )
    .unwrap();
    let set = model.manifest().features.named().unwrap();
    let (node_columns, config_columns) = (set.node_features().len(), set.config_features().len());
    let ends = (1..nodes).map(|node| [node, node - 1].map(|node| u32::try_from(node).unwrap()));
    let features = vec![1.0; nodes * node_columns];
    let graph = FeatureGraph::new(
        set.name().to_owned(),
        nodes,
        features,
        ends.collect(),
        &Limits::default(),
    )
    .unwrap();
    let batch = NodeFeatureBatch::from_values(
        [nodes, config_columns],
        &vec![1.0; nodes * config_columns],
        &Limits::default(),
    );
    let batch = batch.unwrap();
    (
        GraphHandle::feature_graph(&graph),
        Configurations::FeatureSet(batch),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_is_too_large_for_a_model_is_refused_and_others_are_ranked() {
    let artifacts = Artifacts::copy();
    let server = TestServer::start_with(&[
        &artifacts.flag(),
        "--workers=1",
        "--max-call-bytes=1073741824",
    ])
    .await;
    let client = server.client().await;
    let model = Some(HALIDE.parse().unwrap());
    let (graph, configurations) = halide_chain(20_000);
    let request = RankRequest::new(&graph, &configurations).model(model.clone());
    let refused = client.rank(&request).await.unwrap_err();
    assert_eq!(
        refused.refusal().unwrap().reason(),
        Some("GRAPH_TOO_LARGE"),
        "{refused}"
    );
    let message = refused.to_string();
    says!(
        message,
        "20000 nodes",
        "19999 edges",
        "939524096 bytes",
        "--max-call-bytes"
    );
    let (graph, configurations) = halide_chain(1_000);
    client
        .rank(&RankRequest::new(&graph, &configurations).model(model))
        .await
        .unwrap();
}
