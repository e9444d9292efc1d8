//! Artifacts of whole-graph models load beside the others, or are rejected with the reason.

use hlorank_proto::v1::Model as ModelMessage;
use hlorank_server::{
    model::{Model, Rejection},
    runtime::Runtime,
};
use hlorank_tests::prelude::*;

async fn get(server: &TestServer, name: &str) -> Result<ModelMessage, tonic::Status> {
    let request = GetModelRequest {
        name: name.to_owned(),
        version: 0,
    };
    Ok(server
        .models()
        .await
        .get_model(request)
        .await?
        .into_inner()
        .model
        .unwrap())
}

#[tokio::test]
async fn a_model_says_of_which_kind_it_is() {
    let server = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    for (name, batch_dependent) in [
        ("layout-whole-graph", false),
        ("layout-cross-configuration", true),
        ("tile-whole-graph", false),
    ] {
        let model = get(&server, name).await.unwrap();
        assert_eq!(
            (model.kind.as_str(), model.chunk_configs),
            ("graph", 5),
            "{name}"
        );
        assert_eq!((model.embedding_size, model.buckets), (0, vec![]), "{name}");
        assert_eq!(model.batch_dependent, batch_dependent, "{name}");
        assert!(model.serving && !model.default_for_task, "{name}");
    }
    let segment = get(&server, "layout-xla-cpu").await.unwrap();
    assert_eq!(
        (segment.kind.as_str(), segment.chunk_configs),
        ("segment", 0)
    );
    assert!(segment.embedding_size > 0 && !segment.buckets.is_empty());
}

#[tokio::test]
async fn an_artifact_that_is_refused_leaves_the_others_serving() {
    let models = Artifacts::copy();
    models.edit_manifest(Path::new("tile-whole-graph/1"), |manifest| {
        manifest["chunk_configs"] = 0.into();
    });
    let server = TestServer::start_with(&[&models.flag()]).await;
    assert_eq!(
        get(&server, "tile-whole-graph").await.unwrap_err().code(),
        Code::NotFound
    );
    assert!(get(&server, "layout-whole-graph").await.is_ok());
}

/// Returns why an artifact is rejected after an edit of its manifest.
fn refusal(name: &str, field: &str, value: serde_json::Value) -> Rejection {
    let models = Artifacts::copy();
    let artifact = models.folder().join(name).join("1");
    models.edit_manifest(&artifact, |manifest| manifest[field] = value);
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    Model::load(&artifact, &runtime, 1)
        .err()
        .expect("the artifact is refused")
}

#[test]
fn a_model_with_the_inputs_of_the_other_task_is_refused() {
    for (name, task, found, expected) in [
        (
            "layout-whole-graph",
            "tile",
            "configurable, edges",
            "config, edges",
        ),
        (
            "tile-whole-graph",
            "layout",
            "config, edges",
            "configurable, edges",
        ),
    ] {
        let refusal = refusal(name, "task", task.into());
        assert_eq!(refusal.reason, "INTERFACE_NAMES", "{refusal}");
        let message = refusal.message;
        assert!(message.starts_with("model.onnx has inputs "), "{message}");
        let (has, needs) = message.split_once("expected").unwrap();
        assert!(has.contains(found) && needs.contains(expected), "{message}");
    }
}

#[test]
fn a_whole_graph_artifact_needs_its_one_file() {
    let unlisted = refusal("tile-whole-graph", "files", serde_json::json!({}));
    assert_eq!(
        unlisted.to_string(),
        "FILE_UNLISTED: manifest.json lists no digest of model.onnx"
    );

    let models = Artifacts::copy();
    let artifact = models.folder().join("tile-whole-graph/1");
    let segment = &models.versions(TILE_MODEL)[0];
    fs::copy(segment.join("head.onnx"), artifact.join("model.onnx")).unwrap();
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    let replaced = Model::load(&artifact, &runtime, 1).err().unwrap();
    assert_eq!(replaced.reason, "DIGEST_MISMATCH", "{replaced}");
    let message = replaced.message;
    assert!(message.starts_with("model.onnx has SHA-256 "), "{message}");
}
