//! The ONNX Runtime library, and sessions of one thread each.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{RunOptions, Session, builder::GraphOptimizationLevel},
};
use parking_lot::Mutex;

use crate::device;

/// Why ONNX Runtime cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The library cannot be loaded.
    #[error(
        "cannot load ONNX Runtime from `{path}`: {detail}; run `make setup` in a checkout of hlorank and start the \
         server there, or set --onnxruntime or HLORANK_ONNXRUNTIME to the path of libonnxruntime.so, version 1.24 or \
         newer"
    )]
    Library {
        /// The path of the library.
        path: String,
        /// The error of the loader.
        detail: String,
    },
    /// A session cannot be created or run.
    #[error("ONNX Runtime: {0}")]
    Session(String),
}

impl<T> From<ort::Error<T>> for RuntimeError {
    fn from(error: ort::Error<T>) -> Self {
        Self::Session(error.to_string())
    }
}

/// The loaded library.
#[derive(Clone)]
pub struct Runtime {
    environment: Environment,
}

/// ONNX Runtime allows one environment per process, so the servers of a process share it.
static LOADED: Mutex<Option<Runtime>> = Mutex::new(None);

impl Runtime {
    /// Loads the library, or returns the one that the process has loaded already.
    pub fn load(library: &Path) -> Result<Self, RuntimeError> {
        // The lock is held while the library is loaded, so that a second server waits instead of
        // loading it again.
        let mut loaded = LOADED.lock();
        if let Some(runtime) = loaded.as_ref() {
            return Ok(runtime.clone());
        }
        let failed = |detail| RuntimeError::Library {
            path: library.display().to_string(),
            detail,
        };
        // The loader does not say that a file is missing. It looks for a name without a folder in several places.
        if library.is_absolute() {
            fs::metadata(library).map_err(|error| failed(error.to_string()))?;
        }
        let builder = ort::init_from(library).map_err(|error| failed(error.to_string()))?;
        let environment = builder.with_name("hlorank").with_telemetry(false).build()?;
        Ok(loaded.insert(Self { environment }).clone())
    }

    /// Creates a session of a serialized ONNX model. It runs only on the calling thread.
    pub fn session(&self, model: &[u8]) -> Result<Session, RuntimeError> {
        self.session_at(GraphOptimizationLevel::All, model)
    }

    /// Creates a session that runs every operator of the model as it is.
    pub(crate) fn unoptimized_session(&self, model: &[u8]) -> Result<Session, RuntimeError> {
        self.session_at(GraphOptimizationLevel::Disable, model)
    }

    fn session_at(
        &self,
        level: GraphOptimizationLevel,
        model: &[u8],
    ) -> Result<Session, RuntimeError> {
        let mut builder = Session::builder(&self.environment)?
            .with_optimization_level(level)?
            // Callers log the errors that they receive; lines that ONNX Runtime prints have another format.
            .with_log_level(LogLevel::Fatal)?
            // The compute threads run sessions side by side; threads of the sessions would compete
            // with them.
            .with_intra_threads(device::SESSION_THREADS)?
            .with_inter_threads(device::SESSION_THREADS)?
            .with_config_entry("session.intra_op.allow_spinning", "0")?;
        Ok(builder.commit_from_memory(model)?)
    }
}

/// Stops runs of sessions from another thread. Runs in progress fail between two operators, later runs at once.
pub struct Interrupt {
    options: RunOptions,
    stopped: AtomicBool,
    expired: AtomicBool,
    on_abandoned: Arc<dyn Fn() + Send + Sync>,
}

impl Interrupt {
    /// Calls `on_abandoned` if a run does not end although it was stopped.
    pub fn new(on_abandoned: Arc<dyn Fn() + Send + Sync>) -> Result<Self, RuntimeError> {
        let options = RunOptions::new()?;
        Ok(Self {
            options,
            stopped: AtomicBool::new(false),
            expired: AtomicBool::new(false),
            on_abandoned,
        })
    }

    /// Makes every run return the memory that it took to the system. Without this, a session keeps what its largest run took.
    pub fn returning_memory(mut self) -> Result<Self, RuntimeError> {
        self.options
            .set("memory.enable_memory_arena_shrinkage", "cpu:0")?;
        Ok(self)
    }

    /// Stops every run that was started with this interrupt.
    pub fn stop(&self) {
        // A run may be stopped twice: when it takes too long, and when nobody waits for it.
        if self.stopped.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Err(error) = self.options.terminate() {
            tracing::warn!(%error, "a run continues although nobody waits for it");
        }
    }

    /// Stops the runs because one of them took too long.
    pub fn expire(&self) {
        self.expired.store(true, Ordering::Relaxed);
        self.stop();
    }

    /// Reports that a run did not end.
    pub fn abandoned(&self) {
        (self.on_abandoned)();
    }

    /// Whether runs fail because they were stopped.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Whether runs fail because one of them took too long.
    #[must_use]
    pub fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }
}
