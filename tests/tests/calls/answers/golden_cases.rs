//! The server returns the scores that the exporter of an artifact recorded.

use std::io::{Write as _, stderr};

use hlorank_client::ModelReference;
use hlorank_server::{
    compute::Worker,
    model::{Model, SegmentModel},
    runtime::Runtime,
};
use hlorank_tests::prelude::*;

#[tokio::test]
async fn golden_cases_are_reproduced() {
    let models = Artifacts::all().with_papers();
    let server = TestServer::start_with(&[&models.flag()]).await;
    let artifacts = models.all_versions();
    assert!(
        artifacts
            .iter()
            .any(|artifact| artifact.join("model.onnx").is_file()),
        "no whole-graph artifact"
    );
    for artifact in artifacts {
        let manifest: serde_json::Value =
            serde_json::from_slice(&fs::read(artifact.join("manifest.json")).unwrap()).unwrap();
        let model = format!(
            "{}@{}",
            manifest["name"].as_str().unwrap(),
            manifest["version"]
        );
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

#[test]
fn small_calls_of_every_model_that_ships_stay_on_the_thread_that_received_them() {
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    for version in Artifacts::all().with_papers().all_versions() {
        let model = Model::load(&version, &runtime, 1).unwrap();
        let has_head = |model: &Arc<SegmentModel>| model.has_head(Worker(1));
        assert!(
            model.segment().is_none_or(has_head),
            "{}",
            version.display()
        );
    }
}

/// Layouts of a product, whose rows all are of one segment, so that they share its tensors.
#[tokio::test]
async fn every_model_of_layouts_ranks_a_graph_of_one_segment() {
    const PRODUCT: &str = "HloModule product\n\nENTRY main {\n  a = f32[32,64]{1,0} parameter(0)\n  \
                           b = f32[64,16]{1,0} parameter(1)\n  ROOT c = f32[32,16]{1,0} dot(a, b), \
                           lhs_contracting_dims={1}, rhs_contracting_dims={0}\n}\n";
    let orders: [[Vec<i32>; 3]; 4] = [
        [vec![1, 0], vec![1, 0], vec![1, 0]],
        [vec![0, 1], vec![1, 0], vec![1, 0]],
        [vec![1, 0], vec![0, 1], vec![1, 0]],
        [vec![0, 1], vec![0, 1], vec![0, 1]],
    ];
    let mut layouts = LayoutBatchBuilder::new(1, Limits::default());
    for tensors in &orders {
        layouts
            .push(&[LayoutEntry::from_tensors(tensors.iter()).unwrap()])
            .unwrap();
    }
    let layouts = Configurations::Layout(layouts.build().unwrap());
    let graph = GraphHandle::hlo_text(PRODUCT.to_owned(), Task::Layout, Vec::new());
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let models = server.client().await.list_models().await.unwrap();
    let models: Vec<_> = models
        .iter()
        .filter(|model| model.name.starts_with("layout"))
        .collect();
    assert!(models.len() >= 2);
    for model in models {
        let reference = format!("{}@{}", model.name, model.version).parse().unwrap();
        let request = RankRequest::new(&graph, &layouts)
            .model(Some(reference))
            .with_scores();
        let ranking = server.client().await.rank(&request).await;
        let ranking = ranking.unwrap_or_else(|error| panic!("{}: {error}", model.name));
        assert_eq!(ranking.scores.len(), orders.len());
        assert_eq!(
            ranking.reuse.distinct_segment_rows,
            orders.len() as u64,
            "one segment"
        );
    }
}

/// Checks golden cases that are programs, whose scores are seconds.
async fn check_programs(server: &TestServer, model: &ModelReference, artifact: &Path) {
    let mut arrays = Arrays::open(&artifact.join("golden.npz"));
    for (number, case) in golden_cases(artifact).iter().enumerate() {
        let module = arrays.values::<u8>(&format!("{number}/hlo_module"));
        let graph = GraphHandle::hlo_module(module, Task::Fusion, Vec::new());
        let request = RankRequest::new(&graph, &case.configurations)
            .model(Some(model.clone()))
            .with_scores();
        let scores = server.client().await.rank(&request).await.unwrap().scores;
        assert_eq!(scores.len(), case.scores.len());
        for (config, (score, golden)) in scores.iter().zip(&case.scores).enumerate() {
            let is_near = (score - golden).abs() <= 1e-4 * golden;
            assert!(
                is_near,
                "{model}, case {number}, configuration {config}: {score}, not {golden}"
            );
        }
    }
}

async fn check(server: &TestServer, model: &ModelReference, number: usize, case: &GoldenCase) {
    let graph = match case.graph.feature_graph() {
        Some(graph) => GraphHandle::feature_graph(graph),
        None => GraphHandle::features(&case.graph),
    };
    let request = RankRequest::new(&graph, &case.configurations)
        .model(Some(model.clone()))
        .with_scores();
    let scores = server
        .client()
        .await
        .rank(&request)
        .await
        .unwrap_or_else(|error| panic!("{error}"))
        .scores;
    assert_eq!(scores.len(), case.scores.len());
    // Scores of the shipped feature set are seconds, far below 1.
    let (share, least) = if case.graph.feature_graph().is_some() {
        (1e-4, 0.0)
    } else {
        (1e-5, 1.0_f32)
    };
    let scale = case
        .scores
        .iter()
        .fold(least, |scale, score| scale.max(score.abs()));
    for (config, (score, golden)) in scores.iter().zip(&case.scores).enumerate() {
        let difference = (score - golden).abs();
        assert!(
            difference <= share * scale,
            "{model}, case {number}, configuration {config}: {score}, not {golden}"
        );
    }
}

/// Returns what git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(repository("."))
        .output()
        .ok()?;
    output.status.success().then_some(output.stdout)
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_the_last_release_serve() {
    let Some(tag) = git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]) else {
        // Not `eprintln!`, whose output the test harness captures.
        let _ = writeln!(
            stderr(),
            "skipped: no tag of a release can be reached from this commit"
        );
        return;
    };
    let tag = String::from_utf8(tag).unwrap();
    let archive = git(&["archive", tag.trim(), "models/registry"]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (packed, unpacked) = (
        folder.path().join("models.tar"),
        folder.path().join("models/registry"),
    );
    fs::write(&packed, archive).unwrap();
    let status = Command::new("tar")
        .arg("-xf")
        .arg(&packed)
        .arg("-C")
        .arg(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    let models = format!("--models={}", unpacked.display());
    let server = TestServer::start_with(&[&models, "--default-models=none"]).await;
    let mut checked = 0;
    for model in fs::read_dir(&unpacked)
        .unwrap()
        .map(Result::unwrap)
        .filter(|entry| entry.path().is_dir())
    {
        for version in fs::read_dir(model.path()).unwrap().map(Result::unwrap) {
            let (name, version) = (model.file_name(), version.file_name());
            let version = version.to_str().unwrap().parse().unwrap();
            server
                .until(name.to_str().unwrap(), version, ModelState::Serving)
                .await;
            checked += 1;
        }
    }
    assert!(checked > 0, "{} has artifacts", tag.trim());
}
