use std::time::Duration;

use hlorank_graph::{FileError, Task};

use crate::{
    compute::WorkerFailed,
    engine::EngineError,
    model::{ArtifactError, Rejection},
};

/// Why a version was rejected.
#[derive(Debug, thiserror::Error)]
pub(in crate::registry) enum ValidationError {
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    #[error(transparent)]
    Golden(#[from] FileError),
    #[error("golden.npz has no cases")]
    NoGoldenCases,
    #[error(
        "every case of golden.npz is one chunk of at most {chunk_configs} configurations, so none shows how the model's \
         batches are cut; add a case with more"
    )]
    GoldenOneChunk { chunk_configs: usize },
    #[error(
        "golden case {case} has {found} configurations, but the model ranks {expected} configurations"
    )]
    GoldenTask {
        case: usize,
        found: Task,
        expected: Task,
    },
    #[error("golden case {case}: {source}")]
    Evaluation { case: usize, source: EngineError },
    #[error(
        "golden case {case}, configuration {config}: the score is {found}, but the exporter's was {expected}; the \
         tolerance is {tolerance:e}"
    )]
    GoldenMismatch {
        case: usize,
        config: usize,
        found: f32,
        expected: f32,
        tolerance: f32,
    },
    #[error(
        "the golden cases take {found:?}, {ratio:.1} times as long as with version {version}; the maximum is {limit} \
         times (--max-slowdown)"
    )]
    TooSlow {
        version: u64,
        found: Duration,
        ratio: f64,
        limit: f64,
    },
    #[error(
        "it ranks {found} configurations, but version {version} ranks {expected} configurations; publish it under \
         another name"
    )]
    OtherTask {
        version: u64,
        found: Task,
        expected: Task,
    },
    #[error("it was not loaded and checked within {limit:?} (--max-load-seconds)")]
    TimedOut { limit: Duration },
    #[error("it was removed or changed while it was checked")]
    Unwanted,
    #[error(transparent)]
    Worker(#[from] WorkerFailed),
}

impl ValidationError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Artifact(error) => error.reason(),
            Self::Golden(FileError::TooLarge { .. }) => "FILE_TOO_LARGE",
            Self::Golden(_) => "GOLDEN_UNREADABLE",
            Self::NoGoldenCases => "GOLDEN_EMPTY",
            Self::GoldenOneChunk { .. } => "GOLDEN_ONE_CHUNK",
            Self::GoldenTask { .. } | Self::OtherTask { .. } => "TASK_MISMATCH",
            Self::Evaluation {
                source: EngineError::Model(failed),
                ..
            } if failed.is_expired() => "LOAD_TIMEOUT",
            Self::Evaluation {
                source: EngineError::InvalidOutput { .. },
                ..
            } => "SCORE_NOT_FINITE",
            Self::Evaluation { .. } => "EVALUATION_FAILED",
            Self::GoldenMismatch { .. } => "GOLDEN_MISMATCH",
            Self::TooSlow { .. } => "TOO_SLOW",
            Self::TimedOut { .. } => "LOAD_TIMEOUT",
            Self::Worker(_) | Self::Unwanted => "SERVER_FAILED",
        }
    }
}

impl From<ValidationError> for Rejection {
    fn from(error: ValidationError) -> Self {
        let transient = matches!(&error, ValidationError::Artifact(error) if error.is_transient());
        Self {
            reason: error.reason(),
            message: error.to_string(),
            transient,
        }
    }
}
