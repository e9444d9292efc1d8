//! A model that was trained on features padded with −1 gets them, or the call fails with the reason.

use std::io::Cursor;

use hlorank_graph::{FeatureFile, Graph, GraphArrays};
use hlorank_tests::prelude::*;
use npyz::{WriteOptions, WriterBuilder as _};
use tempfile::NamedTempFile;
use zip::{ZipArchive, ZipWriter, write::SimpleFileOptions};

/// One tile model of each kind.
const MODELS: [&str; 2] = [TILE_MODEL, "tile-whole-graph"];

/// Returns models whose manifests say that they were trained with −1, with golden cases to match.
async fn models_padded_with_minus_one(kernel: &MeasuredGraph) -> Artifacts {
    let models = Artifacts::copy();
    for version in MODELS.iter().flat_map(|name| models.versions(name)) {
        models.edit_manifest(&version, |manifest| manifest["pad_value"] = (-1).into());
        let model = load_version(&version).unwrap();
        let graph = SegmentedGraph::new(&kernel.graph);
        let scores = score_alone(&model, graph, configurations(kernel).clone()).await;
        let case = golden_case(kernel, &scores.unwrap());
        models.edit_file(&version, "golden.npz", |golden| *golden = case);
    }
    models
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

#[tokio::test]
async fn a_model_padded_with_minus_one_needs_lengths() {
    let measured = read_graphs(&fixture("measured/tile_kernels.pb")).remove(0);
    let padded = models_padded_with_minus_one(&measured).await;
    let padded = TestServer::start_with(&[&padded.flag()]).await;
    let padded = padded.client().await;
    let shipped = TestServer::start_with(&[&Artifacts::copy().flag()]).await;
    let shipped = shipped.client().await;
    let configurations = configurations(&measured);
    for model in MODELS {
        let graph = GraphHandle::from_measured(&measured);
        let scores = async |client: &Client| {
            let ranking = rank_by(client, model, &graph, configurations).await;
            ranking.unwrap().scores
        };
        assert_ne!(scores(&padded).await, scores(&shipped).await, "{model}");

        let graph = GraphHandle::features(&without_lengths(&measured.graph));
        let error = rank_by(&padded, model, &graph, configurations).await;
        let error = error.unwrap_err();
        assert_reason(&error, "PAD_UNKNOWN");
        says!(error.to_string(), model, "pad_value -1");
    }
}
