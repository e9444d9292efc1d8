use std::sync::{Mutex, PoisonError};

use metrics::Counter;

use super::ArtifactError;
use crate::compute::Worker;

/// The sessions of a model, of each worker its own.
pub(super) struct PerWorker<S> {
    sessions: Vec<Mutex<S>>,
    failed_runs: Counter,
}

/// ONNX Runtime failed, or returned the wrong number of values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file} failed: {detail}")]
pub struct ModelFailed {
    file: &'static str,
    detail: String,
}

impl ModelFailed {
    pub(super) fn new(file: &'static str, error: &ort::Error) -> Self {
        Self { file, detail: error.to_string() }
    }
}

impl<S> PerWorker<S> {
    /// Makes the sessions of each worker.
    pub(super) fn new(
        workers: usize,
        failed_runs: Counter,
        make: impl Fn() -> Result<S, ArtifactError>,
    ) -> Result<Self, ArtifactError> {
        let sessions = (0..workers).map(|_| make().map(Mutex::new)).collect::<Result<_, _>>()?;
        Ok(Self { sessions, failed_runs })
    }

    /// Runs a file with the sessions of a worker. The run must return as many values as are expected.
    pub(super) fn run(
        &self,
        worker: Worker,
        file: &'static str,
        expected: usize,
        run: impl FnOnce(&mut S) -> ort::Result<Vec<f32>>,
    ) -> Result<Vec<f32>, ModelFailed> {
        let own = &self.sessions[worker.0 % self.sessions.len()];
        // Never contended: a worker runs one thing at a time.
        let mut session = own.lock().unwrap_or_else(PoisonError::into_inner);
        let values = run(&mut session).map_err(|error| ModelFailed::new(file, &error))?;
        if values.len() == expected {
            return Ok(values);
        }
        Err(ModelFailed { file, detail: format!("it gave {} numbers, expected {expected}", values.len()) })
    }

    /// Counts a run that failed.
    pub(super) fn count_failed_run(&self) {
        self.failed_runs.increment(1);
    }
}
