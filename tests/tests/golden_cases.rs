//! The server returns the scores that the exporter of an artifact recorded.

use std::fs;

use hlorank_client::{GraphHandle, ModelReference, RankRequest};
use hlorank_graph::GoldenCase;
use hlorank_tests::{Artifacts, TestServer, golden_cases};

#[tokio::test]
async fn golden_cases_are_reproduced() {
    let models = Artifacts::copy().with_papers();
    let server = TestServer::start_with(&[&models.flag()]).await;
    let artifacts = models.all_versions();
    assert!(
        artifacts.iter().any(|artifact| artifact.join("model.onnx").is_file()),
        "no whole-graph artifact"
    );
    for artifact in artifacts {
        let manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(artifact.join("manifest.json")).unwrap()).unwrap();
        let model = format!("{}@{}", manifest["name"].as_str().unwrap(), manifest["version"]);
        let cases = golden_cases(&artifact);
        assert!(!cases.is_empty(), "{model} has no golden cases");
        for (number, case) in cases.iter().enumerate() {
            check(&server, &model.parse().unwrap(), number, case).await;
        }
    }
}

async fn check(server: &TestServer, model: &ModelReference, number: usize, case: &GoldenCase) {
    let graph = GraphHandle::features(&case.graph);
    let request = RankRequest::new(&graph, &case.configurations).model(Some(model.clone())).with_scores();
    let scores = server.client().await.rank(&request).await.unwrap_or_else(|error| panic!("{error}")).scores;
    assert_eq!(scores.len(), case.scores.len());
    let scale = case.scores.iter().fold(1.0_f32, |scale, score| scale.max(score.abs()));
    for (config, (score, golden)) in scores.iter().zip(&case.scores).enumerate() {
        let difference = (score - golden).abs();
        assert!(
            difference <= 1e-5 * scale,
            "{model}, case {number}, configuration {config}: {score}, not {golden}"
        );
    }
}
