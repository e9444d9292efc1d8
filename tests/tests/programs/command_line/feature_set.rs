//! Files of a feature set on the command line.

use hlorank_graph::{FeatureFile, Graph};
use hlorank_tests::prelude::*;

use crate::command_line::running::CommandLine;

#[tokio::test(flavor = "multi_thread")]
async fn a_measured_file_is_ranked_evaluated_and_inspected() {
    let (models, model) = (Artifacts::copy(), FeatureSetModel::of_loops("loops-sum"));
    model.write(models.folder(), 1);
    let server = TestServer::start_with(&[&models.flag()]).await;
    let command_line = CommandLine::new(&server);
    let measured = Loops::measured(&model, 5, 30, &mut Rng::with_seed(3));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("loops.npz");
    FeatureFile::write(&path, &measured, Pad::Zero).unwrap();
    let file = path.to_str().unwrap();

    let ranked = command_line.json(&["rank", "--graph", file, "--task", "feature-set"]);
    says!(ranked.to_string(), "loops-sum");
    let text = command_line.text(&["rank", "--graph", file, "--top", "3"]);
    says!(text, "5 nodes; node 0: ");
    let evaluated = command_line.text(&["eval", file]);
    assert!(
        evaluated.contains("1.000"),
        "times follow the scores: {evaluated}"
    );
    let inspected = command_line.json(&["graph", "inspect", file]);
    let graph = &inspected["graphs"][0];
    assert_eq!(
        (&graph["kind"], &graph["nodes"]),
        (&"feature-set".into(), &5.into())
    );
    assert_eq!(graph["hash"], measured.graph.hash().to_string());
    let listed = command_line.text(&["models"]);
    let set = "loops-sum@1 takes the feature set loops: depth, iterations, flops; configurations: tile, unroll";
    assert!(listed.contains(set), "{listed}");

    let bare = folder.path().join("bare.npz");
    let graph = Graph::of_features(measured.graph.feature_graph().unwrap().clone());
    let unmeasured = hlorank_graph::MeasuredGraph {
        graph,
        measurements: None,
        ..measured
    };
    FeatureFile::write(&bare, &unmeasured, Pad::Zero).unwrap();
    let (code, message) = command_line.failure(&["rank", "--graph", bare.to_str().unwrap()]);
    assert!(
        code == Some(2) && message.contains("--configs"),
        "{code:?} {message}"
    );
    let configs = folder.path().join("configs.json");
    let rows = vec![[1.0, 2.0]; 5];
    std::fs::write(
        &configs,
        serde_json::json!([{"node_features": rows}]).to_string(),
    )
    .unwrap();
    let chosen = [
        "rank",
        "--graph",
        bare.to_str().unwrap(),
        "--configs",
        configs.to_str().unwrap(),
    ];
    says!(command_line.text(&chosen), "5 nodes; node 0: 1 2");
}
