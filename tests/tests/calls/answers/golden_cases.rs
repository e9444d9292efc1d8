//! The server returns the scores that the exporter of an artifact recorded.

use hlorank_server::{compute::Worker, model::SegmentModel};
use hlorank_tests::prelude::*;

#[tokio::test]
async fn golden_cases_are_reproduced() {
    let models = Artifacts::all().with_papers();
    let server = TestServer::start_with(&[&models.flag()]).await;
    let client = server.client().await;
    let artifacts = models.all_versions();
    assert!(
        artifacts
            .iter()
            .any(|artifact| artifact.join("model.onnx").is_file()),
        "no whole-graph artifact"
    );
    for artifact in artifacts {
        let place = artifact.strip_prefix(models.folder()).unwrap();
        let model = place.to_str().unwrap().replace('/', "@");
        let cases = golden_cases(&artifact);
        assert!(!cases.is_empty(), "{model} has no golden cases");
        for (number, case) in cases.iter().enumerate() {
            let graph = graph_of_case(&artifact, number, case);
            let ranking = rank_by(&client, &model, &graph, &case.configurations).await;
            let scores = ranking.unwrap_or_else(|error| panic!("{error}")).scores;
            assert_eq!(scores.len(), case.scores.len());
            let largest = case
                .scores
                .iter()
                .fold(0.0_f32, |largest, score| largest.max(score.abs()));
            for (config, (score, &golden)) in scores.iter().zip(&case.scores).enumerate() {
                let tolerance = match case.configurations.task() {
                    // Scores of programs and of the shipped feature sets are seconds, far below 1.
                    Task::Fusion => 1e-4 * golden,
                    Task::FeatureSet => 1e-4 * largest,
                    Task::Layout | Task::Tile => 1e-5 * largest.max(1.0),
                };
                assert!(
                    (score - golden).abs() <= tolerance,
                    "{model}, case {number}, configuration {config}: {score}, not {golden}"
                );
            }
        }
    }
}

/// Returns the graph of a golden case as it is sent. Programs are recorded as modules.
fn graph_of_case(artifact: &Path, number: usize, case: &GoldenCase) -> GraphHandle {
    if case.configurations.task() == Task::Fusion {
        let mut arrays = Arrays::open(&artifact.join("golden.npz"));
        let module = arrays.values(&format!("{number}/hlo_module"));
        return GraphHandle::hlo_module(module, Task::Fusion, Vec::new());
    }
    match case.graph.feature_graph() {
        Some(graph) => GraphHandle::feature_graph(graph),
        None => GraphHandle::features(&case.graph),
    }
}

#[test]
fn small_calls_of_every_model_that_ships_stay_on_the_thread_that_received_them() {
    for version in Artifacts::all().with_papers().all_versions() {
        let model = load_version(&version).unwrap();
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
    let product = single(vec![
        operation("parameter", 1, &[]),
        operation("parameter", 2, &[]),
        operation("dot", 3, &[1, 2]),
    ]);
    let graph = GraphHandle::hlo_module(product, Task::Layout, Vec::new());
    let layouts = Configurations::Layout(layouts(1, &[vec![1], vec![2], vec![3], vec![4]]));
    let server = TestServer::start_with(&[&all_models_flag()]).await;
    let client = server.client().await;
    let mut models = client.list_models().await.unwrap();
    models.retain(|model| model.name.starts_with("layout"));
    assert!(models.len() >= 2);
    for model in models {
        let ranking = rank_by(&client, &model.name, &graph, &layouts).await;
        let ranking = ranking.unwrap_or_else(|error| panic!("{}: {error}", model.name));
        assert_eq!(ranking.scores.len(), 4);
        assert_eq!(ranking.reuse.distinct_segment_rows, 4, "one segment");
    }
}

/// Returns what git prints, if it succeeds.
fn git(arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    let output = git.args(arguments).current_dir(repository(".")).output();
    let output = output.ok()?;
    let printed = String::from_utf8(output.stdout).unwrap();
    output.status.success().then(|| printed.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_of_the_last_release_serve() {
    let Some(tag) = git(&["describe", "--tags", "--abbrev=0", "--match", "v[0-9]*"]) else {
        skipped("a tag of a release that can be reached from this commit");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("models.tar");
    let output = format!("--output={}", archive.display());
    git(&["archive", &output, &tag, "models/registry"]).unwrap();
    let mut unpack = Command::new("tar");
    unpack.arg("-xf").arg(&archive).arg("-C").arg(folder.path());
    assert!(unpack.status().unwrap().success());
    let registry = folder.path().join("models/registry");
    let models = format!("--models={}", registry.display());
    let server = TestServer::start_with(&[&models, "--default-models=none"]).await;
    let listed = server.client().await.list_models().await.unwrap();
    let serving = listed.iter().filter(|model| model.serving).count();
    let files = git(&["ls-tree", "-r", "--name-only", &tag, "models/registry"]).unwrap();
    let released = files
        .lines()
        .filter(|file| file.ends_with("manifest.json"))
        .count();
    assert!(released > 0, "{tag} has artifacts");
    assert_eq!(serving, released, "{listed:?}");
}
