use std::sync::Arc;

use metrics::Counter;
use parking_lot::{Mutex, MutexGuard};

use super::ArtifactError;
use crate::{
    compute::Worker,
    runtime::{Interrupt, RuntimeError},
};

/// The sessions of a model, of each worker its own.
pub(super) struct PerWorker<S> {
    sessions: Vec<Mutex<S>>,
    reports: RunReports,
}

/// A run that takes more than this returns its memory to the system. Others leave it to the next run of the session, because
/// new memory costs time.
const MAX_KEPT_BYTES: usize = 64 << 20;

/// Where runs of a model that go wrong are reported.
#[derive(Clone)]
pub struct RunReports {
    /// Counts runs that fail.
    pub failed: Counter,
    /// Called when a run does not end although it was stopped.
    pub on_abandoned: Arc<dyn Fn() + Send + Sync>,
}

impl RunReports {
    /// Reports nothing.
    #[must_use]
    pub fn none() -> Self {
        Self {
            failed: Counter::noop(),
            on_abandoned: Arc::new(|| ()),
        }
    }
}

/// ONNX Runtime failed, or returned the wrong number of values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file} failed: {detail}")]
pub struct ModelFailed {
    file: &'static str,
    detail: String,
    stopped: Option<Stopped>,
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopped {
    Unneeded,
    Expired,
}

impl ModelFailed {
    fn new(file: &'static str, detail: String) -> Self {
        Self {
            file,
            detail,
            stopped: None,
        }
    }

    /// Whether the run was stopped because it took too long.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.stopped == Some(Stopped::Expired)
    }

    /// Whether the run was stopped because nobody needed it any more.
    #[must_use]
    pub fn is_unneeded(&self) -> bool {
        self.stopped == Some(Stopped::Unneeded)
    }
}

impl<S> PerWorker<S> {
    /// Makes the sessions of each worker.
    pub(super) fn new(
        workers: usize,
        reports: RunReports,
        make: impl Fn() -> Result<S, ArtifactError>,
    ) -> Result<Self, ArtifactError> {
        let sessions = (0..workers)
            .map(|_| make().map(Mutex::new))
            .collect::<Result<_, _>>()?;
        Ok(Self { sessions, reports })
    }

    /// Returns an interrupt for runs of a file that take at most `bytes` bytes. Large ones return their memory to the system.
    pub(super) fn interrupt(
        &self,
        file: &'static str,
        bytes: usize,
    ) -> Result<Interrupt, ModelFailed> {
        let interrupt = Interrupt::new(Arc::clone(&self.reports.on_abandoned));
        let interrupt = match interrupt {
            Ok(interrupt) if bytes > MAX_KEPT_BYTES => interrupt.returning_memory(),
            interrupt => interrupt,
        };
        interrupt.map_err(|error: RuntimeError| ModelFailed::new(file, error.to_string()))
    }

    /// Runs a file with the sessions of a worker, as [`Self::run_any`] does. The run must return as many values as are
    /// expected.
    pub(super) fn run(
        &self,
        worker: Worker,
        file: &'static str,
        expected: usize,
        interrupt: &Interrupt,
        run: impl FnOnce(&mut S) -> ort::Result<Vec<f32>>,
    ) -> Result<Vec<f32>, ModelFailed> {
        self.run_any(worker, file, interrupt, |sessions| match run(sessions)? {
            values if values.len() == expected => Ok(values),
            values => Err(ort::Error::new(format!(
                "it gave {} numbers, expected {expected}",
                values.len()
            ))),
        })
    }

    /// Runs a file with the sessions of a worker, and counts a run that fails unless it was stopped because nobody needs
    /// it.
    pub(super) fn run_any<T>(
        &self,
        worker: Worker,
        file: &'static str,
        interrupt: &Interrupt,
        run: impl FnOnce(&mut S) -> ort::Result<T>,
    ) -> Result<T, ModelFailed> {
        let values = self.session(worker, file).and_then(|mut session| {
            run(&mut session).map_err(|error| failed(file, &error, interrupt))
        });
        values.inspect_err(|failed| {
            if !failed.is_unneeded() {
                self.reports.failed.increment(1);
            }
        })
    }

    /// Locks the sessions of a worker. A worker runs one thing at a time, so that only a thread that was left behind can
    /// hold them.
    fn session(
        &self,
        worker: Worker,
        file: &'static str,
    ) -> Result<MutexGuard<'_, S>, ModelFailed> {
        // To wait for such a thread would make this one hang, too.
        let session = self.sessions[worker.0 % self.sessions.len()].try_lock();
        let hangs = || "an earlier run with the same session hangs".to_owned();
        session.ok_or_else(|| ModelFailed::new(file, hangs()))
    }
}

fn failed(file: &'static str, error: &ort::Error, interrupt: &Interrupt) -> ModelFailed {
    let failed = ModelFailed::new(file, error.to_string());
    // An interrupt that expires is also stopped, so expiry is asked for first.
    if interrupt.is_expired() {
        let detail =
            "the run was stopped, because it took longer than --max-run-seconds".to_owned();
        return ModelFailed {
            detail,
            stopped: Some(Stopped::Expired),
            ..failed
        };
    }
    ModelFailed {
        stopped: interrupt.is_stopped().then_some(Stopped::Unneeded),
        ..failed
    }
}
