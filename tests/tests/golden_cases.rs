//! The server returns the scores that the exporter of an artifact recorded.

use std::{fs, path::Path};

use hlorank_client::{GraphHandle, ModelReference, RankRequest};
use hlorank_graph::{GoldenCase, Task};
use hlorank_tests::{Arrays, Artifacts, TestServer, golden_cases};

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
        if manifest["task"] == "fusion" {
            check_programs(&server, &model.parse().unwrap(), &artifact).await;
            continue;
        }
        let cases = golden_cases(&artifact);
        assert!(!cases.is_empty(), "{model} has no golden cases");
        for (number, case) in cases.iter().enumerate() {
            check(&server, &model.parse().unwrap(), number, case).await;
        }
    }
}

/// Checks golden cases that are programs, whose scores are seconds.
async fn check_programs(server: &TestServer, model: &ModelReference, artifact: &Path) {
    let mut arrays = Arrays::open(&artifact.join("golden.npz"));
    for (number, case) in golden_cases(artifact).iter().enumerate() {
        let module = arrays.values::<u8>(&format!("{number}/hlo_module"));
        let graph = GraphHandle::hlo_module(module, Task::Fusion, Vec::new());
        let request = RankRequest::new(&graph, &case.configurations).model(Some(model.clone())).with_scores();
        let scores = server.client().await.rank(&request).await.unwrap().scores;
        assert_eq!(scores.len(), case.scores.len());
        for (config, (score, golden)) in scores.iter().zip(&case.scores).enumerate() {
            let is_near = (score - golden).abs() <= 1e-4 * golden;
            assert!(is_near, "{model}, case {number}, configuration {config}: {score}, not {golden}");
        }
    }
}

async fn check(server: &TestServer, model: &ModelReference, number: usize, case: &GoldenCase) {
    let graph = match case.graph.feature_graph() {
        Some(graph) => GraphHandle::feature_graph(graph),
        None => GraphHandle::features(&case.graph),
    };
    let request = RankRequest::new(&graph, &case.configurations).model(Some(model.clone())).with_scores();
    let scores = server.client().await.rank(&request).await.unwrap_or_else(|error| panic!("{error}")).scores;
    assert_eq!(scores.len(), case.scores.len());
    // Scores of the shipped feature set are seconds, far below 1.
    let (share, least) = if case.graph.feature_graph().is_some() { (1e-4, 0.0) } else { (1e-5, 1.0_f32) };
    let scale = case.scores.iter().fold(least, |scale, score| scale.max(score.abs()));
    for (config, (score, golden)) in scores.iter().zip(&case.scores).enumerate() {
        let difference = (score - golden).abs();
        assert!(
            difference <= share * scale,
            "{model}, case {number}, configuration {config}: {score}, not {golden}"
        );
    }
}
