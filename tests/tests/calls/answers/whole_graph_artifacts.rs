//! Artifacts of whole-graph models load beside the others, or are rejected with the reason.

use hlorank_server::model::Rejection;
use hlorank_tests::prelude::*;

#[tokio::test]
async fn artifacts_that_are_refused_leave_the_others_serving() {
    let models = Artifacts::copy();
    // The golden cases of the second one would be one chunk.
    for (artifact, chunk) in [("tile-whole-graph/1", 0), ("layout-permuted/1", 12)] {
        models.edit_manifest(Path::new(artifact), |manifest| {
            manifest["chunk_configs"] = chunk.into();
        });
    }
    let server = TestServer::start_with(&[&models.flag()]).await;
    let client = server.client().await;
    for (name, reason) in [
        ("tile-whole-graph", "MANIFEST_INVALID"),
        ("layout-permuted", "GOLDEN_ONE_CHUNK"),
    ] {
        let serving = client.get_model(name, None).await.unwrap_err();
        assert_reason(&serving, "MODEL_NOT_FOUND");
        let version = client.get_model(name, Some(1)).await.unwrap();
        assert_eq!(version.rejection.unwrap().reason, reason, "{name}");
    }
    for (name, batch_dependent) in [
        ("layout-whole-graph", false),
        ("layout-cross-configuration", true),
    ] {
        let model = client.get_model(name, None).await.unwrap();
        assert!(model.serving && !model.default_for_task, "{name}");
        assert_eq!((&*model.kind, model.chunk_configs), ("graph", 5), "{name}");
        assert_eq!(model.batch_dependent, batch_dependent, "{name}");
    }
}

/// Returns why an artifact is rejected after a change of it.
fn refusal(name: &str, change: impl FnOnce(&Artifacts, &Path)) -> Rejection {
    let models = Artifacts::copy();
    let artifact = models.folder().join(name).join("1");
    change(&models, &artifact);
    let loaded = load_version(&artifact);
    loaded.err().expect("the artifact is refused")
}

#[test]
fn a_model_with_the_inputs_of_the_other_task_is_refused() {
    let (layout, tile) = ("configurable, edges", "config, edges");
    for (name, task, found, expected) in [
        ("layout-whole-graph", "tile", layout, tile),
        ("tile-whole-graph", "layout", tile, layout),
    ] {
        let refusal = refusal(name, |models, artifact| {
            models.edit_manifest(artifact, |manifest| manifest["task"] = task.into());
        });
        assert_eq!(refusal.reason, "INTERFACE_NAMES", "{refusal}");
        let message = refusal.message;
        assert!(message.starts_with("model.onnx has inputs "), "{message}");
        let (has, needs) = message.split_once("expected").unwrap();
        assert!(has.contains(found) && needs.contains(expected), "{message}");
    }
}

#[test]
fn a_whole_graph_artifact_needs_its_one_file() {
    let unlisted = refusal("tile-whole-graph", |models, artifact| {
        models.edit_manifest(artifact, |manifest| manifest["files"] = json!({}));
    });
    assert_eq!(
        unlisted.to_string(),
        "FILE_UNLISTED: manifest.json lists no digest of model.onnx"
    );
    let replaced = refusal("tile-whole-graph", |_, artifact| {
        let head = fixture("models/tile-xla-cpu/5/head.onnx");
        fs::copy(head, artifact.join("model.onnx")).unwrap();
    });
    let text = replaced.to_string();
    says!(text, "DIGEST_MISMATCH: model.onnx has SHA-256 ");
}
