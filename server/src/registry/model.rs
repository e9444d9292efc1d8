use std::{
    path::Path,
    sync::{Mutex, PoisonError},
};

use hlorank_graph::{Digest, FEATURES, LAYOUT_VALUES, TILE_FEATURES, Task};
use ort::{
    session::{Session, SessionInputValue},
    value::{Outlet, TensorElementType, TensorRef, ValueType},
};

use super::{
    ArtifactError, Manifest,
    artifact::{Artifact, ENCODER, HEAD},
};
use crate::{compute::Worker, runtime::Runtime};

/// A loaded segment model: manifest, and a pair of sessions for each worker.
pub struct Model {
    manifest: Manifest,
    digest: Digest,
    sessions: Vec<Mutex<Sessions>>,
}

struct Sessions {
    encoder: Session,
    head: Session,
}

/// The inputs of `encoder.onnx` for `rows` rows of `segments` distinct segments, padded to `nodes` nodes.
pub struct EncoderInput {
    /// Rows: pairs of segment and local configuration.
    pub rows: usize,
    /// Distinct segments.
    pub segments: usize,
    /// Nodes after padding.
    pub nodes: usize,
    /// `[segments, nodes]`.
    pub opcode: Vec<i64>,
    /// `[segments, nodes, 140]`.
    pub features: Vec<f32>,
    /// `[segments, nodes, nodes]`: 1 where row consumes column.
    pub operands: Vec<f32>,
    /// `[segments, nodes]`: 1 for a real node.
    pub mask: Vec<f32>,
    /// `[rows]`.
    pub segment: Vec<i64>,
    /// The local configuration of each row.
    pub config: ConfigInput,
}

/// The input `config` of `encoder.onnx`.
pub enum ConfigInput {
    /// `[rows, nodes, 18]`: −2 where a node is not configurable, else −1..5.
    Layout(Vec<i64>),
    /// `[rows, 24]`.
    Tile(Vec<f32>),
}

/// ONNX Runtime failed, or gave an answer of the wrong size.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file} failed: {detail}")]
pub struct ModelFailed {
    file: &'static str,
    detail: String,
}

impl Model {
    /// Loads and checks the artifact in a version's folder, with sessions for `workers` workers.
    pub fn load(folder: &Path, runtime: &Runtime, workers: usize) -> Result<Self, ArtifactError> {
        let artifact = Artifact::read(folder)?;
        let sessions = (0..workers).map(|_| Ok(Mutex::new(Sessions::new(&artifact, runtime)?)));
        let sessions = sessions.collect::<Result<Vec<_>, ArtifactError>>()?;
        let digest = Digest(*blake3::hash(&artifact.manifest_bytes).as_bytes());
        Ok(Self { manifest: artifact.manifest, digest, sessions })
    }

    /// What the artifact says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// BLAKE3 of the manifest, which holds the digest of every other file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Runs the encoder: `[rows, D]` embeddings.
    pub fn encode(&self, worker: Worker, input: &EncoderInput) -> Result<Vec<f32>, ModelFailed> {
        let mut sessions = self.sessions(worker);
        let embeddings =
            run_encoder(&mut sessions.encoder, input).map_err(|error| failed(ENCODER, &error))?;
        check_size(ENCODER, embeddings, input.rows * self.manifest.embedding_size)
    }

    /// Runs the head on `[configs, D]` sums: `[configs]` scores.
    pub fn score(&self, worker: Worker, sums: &[f32]) -> Result<Vec<f32>, ModelFailed> {
        let mut sessions = self.sessions(worker);
        let configs = sums.len() / self.manifest.embedding_size;
        let shape = [configs, self.manifest.embedding_size];
        let scores = run_head(&mut sessions.head, shape, sums).map_err(|error| failed(HEAD, &error))?;
        check_size(HEAD, scores, configs)
    }

    /// A worker's own sessions; the lock is never contended.
    fn sessions(&self, worker: Worker) -> std::sync::MutexGuard<'_, Sessions> {
        self.sessions[worker.0 % self.sessions.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn failed(file: &'static str, error: &ort::Error) -> ModelFailed {
    ModelFailed { file, detail: error.to_string() }
}

fn check_size(file: &'static str, values: Vec<f32>, expected: usize) -> Result<Vec<f32>, ModelFailed> {
    if values.len() == expected {
        return Ok(values);
    }
    Err(ModelFailed { file, detail: format!("it gave {} numbers, expected {expected}", values.len()) })
}

fn run_encoder(session: &mut Session, input: &EncoderInput) -> ort::Result<Vec<f32>> {
    let EncoderInput { rows, segments, nodes, .. } = *input;
    let opcode = TensorRef::from_array_view(([segments, nodes], input.opcode.as_slice()))?;
    let features = TensorRef::from_array_view(([segments, nodes, FEATURES], input.features.as_slice()))?;
    let operands = TensorRef::from_array_view(([segments, nodes, nodes], input.operands.as_slice()))?;
    let mask = TensorRef::from_array_view(([segments, nodes], input.mask.as_slice()))?;
    let segment = TensorRef::from_array_view(([rows], input.segment.as_slice()))?;
    let config: SessionInputValue<'_> = match &input.config {
        ConfigInput::Layout(config) => {
            TensorRef::from_array_view(([rows, nodes, LAYOUT_VALUES], config.as_slice()))?.into()
        }
        ConfigInput::Tile(config) => {
            TensorRef::from_array_view(([rows, TILE_FEATURES], config.as_slice()))?.into()
        }
    };
    let outputs = session.run(ort::inputs! {
        "opcode" => opcode, "features" => features, "operands" => operands, "mask" => mask,
        "segment" => segment, "config" => config,
    })?;
    Ok(outputs["embedding"].try_extract_tensor::<f32>()?.1.to_vec())
}

fn run_head(session: &mut Session, shape: [usize; 2], sums: &[f32]) -> ort::Result<Vec<f32>> {
    let sum = TensorRef::from_array_view((shape, sums))?;
    let outputs = session.run(ort::inputs! { "sum" => sum })?;
    Ok(outputs["score"].try_extract_tensor::<f32>()?.1.to_vec())
}

impl Sessions {
    fn new(artifact: &Artifact, runtime: &Runtime) -> Result<Self, ArtifactError> {
        let session = |file, bytes: &[u8]| {
            runtime.session(bytes).map_err(|source| ArtifactError::Session { file, source })
        };
        let sessions =
            Self { encoder: session(ENCODER, &artifact.encoder)?, head: session(HEAD, &artifact.head)? };
        sessions.check_interface(artifact.manifest.task())?;
        Ok(sessions)
    }

    /// Names, types and ranks of the artifact contract.
    fn check_interface(&self, task: Task) -> Result<(), ArtifactError> {
        let config = match task {
            Task::Layout => "config int64[3]",
            Task::Tile => "config float32[2]",
        };
        let encoder = [
            "features float32[3]",
            "mask float32[2]",
            "opcode int64[2]",
            "operands float32[3]",
            "segment int64[1]",
        ];
        check_outlets(ENCODER, "inputs", self.encoder.inputs(), &[&[config], &encoder[..]].concat())?;
        check_outlets(ENCODER, "outputs", self.encoder.outputs(), &["embedding float32[2]"])?;
        check_outlets(HEAD, "inputs", self.head.inputs(), &["sum float32[2]"])?;
        check_outlets(HEAD, "outputs", self.head.outputs(), &["score float32[1]"])
    }
}

fn check_outlets(
    file: &'static str,
    what: &'static str,
    outlets: &[Outlet],
    expected: &[&str],
) -> Result<(), ArtifactError> {
    let mut found: Vec<String> = outlets.iter().map(outlet_signature).collect();
    found.sort();
    if found == expected {
        return Ok(());
    }
    Err(ArtifactError::Interface { file, what, found: found.join(", "), expected: expected.join(", ") })
}

/// `name type[rank]`.
fn outlet_signature(outlet: &Outlet) -> String {
    match outlet.dtype() {
        ValueType::Tensor { ty, shape, .. } => {
            let ty = match ty {
                TensorElementType::Float32 => "float32".to_owned(),
                TensorElementType::Int64 => "int64".to_owned(),
                other => format!("{other:?}"),
            };
            format!("{} {ty}[{}]", outlet.name(), shape.len())
        }
        other => format!("{} {other:?}", outlet.name()),
    }
}
