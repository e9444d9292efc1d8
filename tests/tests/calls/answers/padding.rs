//! A model that was trained on features padded with −1 gets them, or the call fails with the reason.

use std::io::Cursor;

use hlorank_graph::{FeatureFile, Graph, GraphArrays};
use hlorank_server::{
    compute::ComputePool,
    engine::{Engine, Terms},
    model::Model,
    runtime::Runtime,
};
use hlorank_tests::prelude::*;
use npyz::{WriteOptions, WriterBuilder as _};
use tempfile::NamedTempFile;
use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

/// One tile model of each kind.
const MODELS: [&str; 2] = [TILE_MODEL, "tile-whole-graph"];

/// Returns models whose manifests say that they were trained with −1, with golden cases to match.
async fn models_padded_with_minus_one(kernel: &MeasuredGraph) -> Artifacts {
    let models = Artifacts::copy();
    for name in MODELS {
        for version in models.versions(name) {
            models.edit_manifest(&version, |manifest| manifest["pad_value"] = (-1).into());
            let scores = scores(&version, kernel).await;
            models.edit_file(&version, "golden.npz", |golden| {
                *golden = golden_case(kernel, &scores);
            });
        }
    }
    models
}

/// Returns the scores of a model version for a kernel, without checking golden cases.
async fn scores(version: &Path, kernel: &MeasuredGraph) -> Vec<f32> {
    let runtime = Runtime::load(&onnxruntime()).unwrap();
    let model = Arc::new(Model::load(version, &runtime, 1).unwrap());
    let engine = Engine::without_cache(Arc::new(ComputePool::new(NonZeroUsize::MIN).unwrap()));
    let (graph, tiles) = (
        Arc::new(SegmentedGraph::new(&kernel.graph)),
        configurations(kernel).clone(),
    );
    engine
        .score(&model, &graph, tiles, Terms::default())
        .await
        .unwrap()
        .scores
}

/// Returns a `golden.npz` of one case.
fn golden_case(kernel: &MeasuredGraph, scores: &[f32]) -> Vec<u8> {
    let features = NamedTempFile::new().unwrap();
    FeatureFile::write(features.path(), kernel, Pad::MinusOne).unwrap();
    let mut features = ZipArchive::new(File::open(features.path()).unwrap()).unwrap();
    let mut golden = ZipWriter::new(Cursor::new(Vec::new()));
    for array in 0..features.len() {
        let array = features.by_index(array).unwrap();
        let name = format!("0/{}", array.name());
        golden.raw_copy_file_rename(array, name).unwrap();
    }
    golden
        .start_file("0/score.npy", SimpleFileOptions::default())
        .unwrap();
    let options = WriteOptions::new()
        .default_dtype()
        .shape(&[scores.len() as u64]);
    let mut array = options.writer(&mut golden).begin_nd().unwrap();
    array.extend(scores.iter().copied()).unwrap();
    array.finish().unwrap();
    golden.finish().unwrap().into_inner()
}

/// Returns a graph whose features came padded with 0, so that lengths are lost.
fn without_lengths(graph: &Graph) -> Graph {
    let (opcodes, edges) = (graph.opcodes().to_vec(), graph.edges().to_vec());
    let features = graph.raw_features().to_vec();
    let arrays =
        GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &Limits::default())
            .unwrap();
    Graph::new(graph.task(), arrays, graph.configurable().to_vec()).unwrap()
}

fn request<'a>(
    graph: &'a GraphHandle,
    configurations: &Configurations,
    model: &str,
) -> RankRequest<'a> {
    RankRequest::new(graph, configurations)
        .model(Some(model.parse().unwrap()))
        .with_scores()
}

#[tokio::test]
async fn a_model_padded_with_minus_one_needs_lengths() {
    let measured = read_graphs(&fixture("measured/tile_kernels.pb")).remove(0);
    let padded = models_padded_with_minus_one(&measured).await;
    let padded = TestServer::start_with(&[&padded.flag()]).await;
    let shipped = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let configurations = configurations(&measured);
    for model in MODELS {
        let mut scores = Vec::new();
        for server in [&padded, &shipped] {
            let graph = GraphHandle::from_measured(&measured);
            scores.push(
                server
                    .client()
                    .await
                    .rank(&request(&graph, configurations, model))
                    .await
                    .unwrap()
                    .scores,
            );
        }
        assert_ne!(scores[0], scores[1], "{model} sees the pad");

        let graph = GraphHandle::features(&without_lengths(&measured.graph));
        let error = padded
            .client()
            .await
            .rank(&request(&graph, configurations, model))
            .await
            .unwrap_err();
        let refusal = error.refusal().unwrap();
        assert_eq!(
            (refusal.code(), refusal.reason()),
            (Code::FailedPrecondition, Some("PAD_UNKNOWN"))
        );
        let message = refusal.message();
        assert!(
            message.contains(model) && message.contains("pad_value -1"),
            "{message}"
        );
    }
}
