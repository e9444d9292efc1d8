use std::{borrow::Cow, fmt::Debug, sync::Arc};

use hlorank_graph::{ConfigInput, ConfigValues};
use metrics::Counter;
use ort::{
    session::{Session, SessionInputValue},
    value::{PrimitiveTensorElementType, TensorRef, ToShape},
};
use parking_lot::Mutex;

use super::Rejection;
use crate::{compute::Worker, runtime::Interrupt};

/// The sessions of a model, of each worker its own.
pub(super) struct PerWorker<S> {
    sessions: Vec<Mutex<S>>,
    reports: RunReports,
}

/// The inputs of a session by name.
pub(super) type Inputs<'a> = Vec<(Cow<'a, str>, SessionInputValue<'a>)>;

/// Where runs of a model that go wrong are reported.
#[derive(Clone)]
pub struct RunReports {
    /// Counts runs that fail.
    pub failed: Counter,
    /// Called when a run does not end although it was stopped.
    pub on_abandoned: Arc<dyn Fn() + Send + Sync>,
}

/// ONNX Runtime failed, or returned the wrong number of values.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{file} failed: {detail}")]
pub struct ModelFailed {
    file: &'static str,
    detail: String,
    stopped: Option<StopReason>,
}

/// Why a run was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    Unneeded,
    Expired,
}

/// A run that takes more than this returns its memory to the system. Others leave it to the next run of the session, because
/// new memory costs time.
const MAX_KEPT_BYTES: usize = 64 << 20;

impl RunReports {
    /// Reports nothing.
    pub fn none() -> Self {
        Self {
            failed: Counter::noop(),
            on_abandoned: Arc::new(|| ()),
        }
    }
}

impl ModelFailed {
    /// Whether the run was stopped because it took too long.
    pub fn is_expired(&self) -> bool {
        self.stopped == Some(StopReason::Expired)
    }

    /// Whether the run was stopped because nobody needed it any more.
    pub fn is_unneeded(&self) -> bool {
        self.stopped == Some(StopReason::Unneeded)
    }
}

impl<S> PerWorker<S> {
    /// Makes the sessions of each worker.
    pub(super) fn new(
        workers: usize,
        reports: RunReports,
        make: impl Fn() -> Result<S, Rejection>,
    ) -> Result<Self, Rejection> {
        let sessions = (0..workers).map(|_| make().map(Mutex::new));
        Ok(Self {
            sessions: sessions.collect::<Result<_, _>>()?,
            reports,
        })
    }

    /// Number of workers that have sessions.
    pub(super) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns an interrupt for runs of a file that take at most `bytes` bytes. Large ones return their memory to the system.
    pub(super) fn interrupt(
        &self,
        file: &'static str,
        bytes: usize,
    ) -> Result<Interrupt, ModelFailed> {
        let mut interrupt = Interrupt::new(Arc::clone(&self.reports.on_abandoned));
        if bytes > MAX_KEPT_BYTES {
            interrupt = interrupt.and_then(Interrupt::returning_memory);
        }
        interrupt.map_err(|error| ModelFailed {
            file,
            detail: error.to_string(),
            stopped: None,
        })
    }

    /// Runs a file with the sessions of a worker, and counts a run that fails unless it was stopped because nobody needs it.
    pub(super) fn run<T>(
        &self,
        worker: Worker,
        file: &'static str,
        interrupt: &Interrupt,
        run: impl FnOnce(&mut S) -> ort::Result<T>,
    ) -> Result<T, ModelFailed> {
        // A worker runs one thing at a time, so that only a thread that was left behind can hold its
        // sessions. To wait for such a thread would make this one hang, too.
        let session = self.sessions[worker.0 % self.sessions.len()].try_lock();
        let mut session = session.ok_or_else(|| {
            self.reports.failed.increment(1);
            ModelFailed {
                file,
                detail: "an earlier run with the same session hangs".to_owned(),
                stopped: None,
            }
        })?;
        run(&mut session).map_err(|error| {
            // An interrupt that expires is also stopped, so expiry is asked for first.
            let (stopped, detail) = if interrupt.is_expired() {
                let detail = "the run was stopped, because it took longer than --max-run-seconds";
                (Some(StopReason::Expired), detail.to_owned())
            } else {
                let unneeded = interrupt.is_stopped().then_some(StopReason::Unneeded);
                (unneeded, error.to_string())
            };
            if stopped != Some(StopReason::Unneeded) {
                self.reports.failed.increment(1);
            }
            ModelFailed {
                file,
                detail,
                stopped,
            }
        })
    }
}

/// A tensor as ONNX Runtime takes it, without a copy.
pub(super) fn view<'a, T>(
    shape: impl ToShape + 'a,
    values: &'a [T],
) -> ort::Result<SessionInputValue<'a>>
where
    T: PrimitiveTensorElementType + Debug + Clone + 'static,
{
    Ok(TensorRef::from_array_view((shape, values))?.into())
}

/// The input `config` of a model as ONNX Runtime takes it, without a copy.
pub(super) fn config_value(input: &ConfigInput) -> ort::Result<SessionInputValue<'_>> {
    let shape = input.shape.as_slice();
    match &input.values {
        ConfigValues::Float32(values) => view(shape, values),
        ConfigValues::Int64(values) => view(shape, values),
    }
}

/// Runs a session, and returns the values of one output, which must be as many as expected.
pub(super) fn output(
    session: &mut Session,
    inputs: Inputs<'_>,
    output: &str,
    expected: usize,
    interrupt: &Interrupt,
) -> ort::Result<Vec<f32>> {
    let outputs = session.run_with_options(inputs, interrupt.options())?;
    let (_, values) = outputs[output].try_extract_tensor::<f32>()?;
    if values.len() != expected {
        let found = values.len();
        return Err(ort::Error::new(format!(
            "it gave {found} numbers, expected {expected}"
        )));
    }
    // The outputs lie in memory of the session, which the next run uses again.
    Ok(values.to_vec())
}
