use std::{
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use hlorank_graph::{ConfigInput, Digest};
use metrics::Counter;

use super::{
    Artifact, ArtifactError, EncoderInput, Manifest, WholeGraphInput,
    artifact::{ENCODER, HEAD, MODEL, OnnxModels},
    segment::SegmentSessions,
    whole_graph::{Interrupt, WholeGraphSession},
};
use crate::{compute::Worker, runtime::Runtime};

/// A loaded model: its artifact, and sessions for each worker.
pub struct Model {
    artifact: Artifact,
    sessions: Vec<Mutex<Sessions>>,
    failed_runs: Counter,
}

/// What one worker runs a model with.
enum Sessions {
    Segment(SegmentSessions),
    WholeGraph(WholeGraphSession),
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
        Self::new(Artifact::read(folder)?, runtime, workers)
    }

    /// Makes the sessions of an artifact for `workers` workers.
    pub fn new(artifact: Artifact, runtime: &Runtime, workers: usize) -> Result<Self, ArtifactError> {
        let sessions = (0..workers).map(|_| Ok(Mutex::new(Sessions::new(&artifact, runtime)?)));
        let sessions = sessions.collect::<Result<_, ArtifactError>>()?;
        Ok(Self { artifact, sessions, failed_runs: Counter::noop() })
    }

    /// Counts the runs that fail.
    #[must_use]
    pub fn counting(self, failed_runs: Counter) -> Self {
        Self { failed_runs, ..self }
    }

    /// What it was made of.
    #[must_use]
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    /// What the artifact says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.artifact.manifest
    }

    /// BLAKE3 of the manifest, which holds the digest of every other file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.artifact.digest
    }

    /// Runs the encoder of a segment model: `[rows, D]` embeddings.
    pub fn encode(&self, worker: Worker, input: &EncoderInput) -> Result<Vec<f32>, ModelFailed> {
        let expected = input.rows * self.manifest().embedding_size;
        match &mut *self.sessions(worker) {
            Sessions::Segment(sessions) => self.counted(checked(ENCODER, sessions.encode(input), expected)),
            Sessions::WholeGraph(_) => Err(ModelFailed::absent(ENCODER)),
        }
    }

    /// Runs the head of a segment model on `[configs, D]` sums: `[configs]` scores.
    pub fn score(&self, worker: Worker, sums: &[f32]) -> Result<Vec<f32>, ModelFailed> {
        match &mut *self.sessions(worker) {
            Sessions::Segment(sessions) => {
                let shape = [sums.len() / self.manifest().embedding_size, self.manifest().embedding_size];
                self.counted(checked(HEAD, sessions.score(shape, sums), shape[0]))
            }
            Sessions::WholeGraph(_) => Err(ModelFailed::absent(HEAD)),
        }
    }

    /// Runs a whole-graph model on some configurations of a graph, and returns their `[configs]` scores. Fails once it is
    /// interrupted.
    pub fn score_whole_graph(
        &self,
        worker: Worker,
        graph: &WholeGraphInput,
        config: &ConfigInput,
        interrupt: &Interrupt,
    ) -> Result<Vec<f32>, ModelFailed> {
        match &mut *self.sessions(worker) {
            Sessions::WholeGraph(session) => {
                let scores = checked(MODEL, session.score(graph, config, interrupt), config.shape[0]);
                if interrupt.is_stopped() { scores } else { self.counted(scores) }
            }
            Sessions::Segment(_) => Err(ModelFailed::absent(MODEL)),
        }
    }

    /// What stops runs of [`Self::score_whole_graph`].
    pub fn interrupt(&self) -> Result<Interrupt, ModelFailed> {
        Interrupt::new().map_err(|error| ModelFailed { file: MODEL, detail: error.to_string() })
    }

    /// Counts a run that failed.
    fn counted(&self, ran: Result<Vec<f32>, ModelFailed>) -> Result<Vec<f32>, ModelFailed> {
        ran.inspect_err(|_| self.failed_runs.increment(1))
    }

    /// A worker's own sessions; the lock is never contended.
    fn sessions(&self, worker: Worker) -> MutexGuard<'_, Sessions> {
        self.sessions[worker.0 % self.sessions.len()].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ModelFailed {
    /// A file that models of the other kind have.
    fn absent(file: &'static str) -> Self {
        Self { file, detail: "a model of this kind has none".to_owned() }
    }
}

/// As many numbers as there must be.
fn checked(
    file: &'static str,
    answer: ort::Result<Vec<f32>>,
    expected: usize,
) -> Result<Vec<f32>, ModelFailed> {
    let values = answer.map_err(|error| ModelFailed { file, detail: error.to_string() })?;
    if values.len() == expected {
        return Ok(values);
    }
    Err(ModelFailed { file, detail: format!("it gave {} numbers, expected {expected}", values.len()) })
}

impl Sessions {
    fn new(artifact: &Artifact, runtime: &Runtime) -> Result<Self, ArtifactError> {
        let session = |file, bytes: &Bytes| {
            runtime.session(bytes).map_err(|source| ArtifactError::Session { file, source })
        };
        Ok(match &artifact.models {
            OnnxModels::Segment { encoder, head } => {
                Self::Segment(SegmentSessions::new(session(ENCODER, encoder)?, session(HEAD, head)?))
            }
            OnnxModels::WholeGraph { model } => {
                Self::WholeGraph(WholeGraphSession::new(session(MODEL, model)?, artifact.manifest.task()))
            }
        })
    }
}
