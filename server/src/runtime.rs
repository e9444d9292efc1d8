//! The ONNX Runtime library, and sessions of one thread each.

use std::{path::Path, sync::Mutex};

use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{Session, builder::GraphOptimizationLevel},
};

use crate::device::DeviceProfile;

/// Why ONNX Runtime cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The library cannot be loaded.
    #[error(
        "cannot load ONNX Runtime from `{path}`: {detail}; run `make setup`, or set --onnxruntime to its path"
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
        let mut loaded = LOADED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(runtime) = loaded.as_ref() {
            return Ok(runtime.clone());
        }
        let builder = ort::init_from(library).map_err(|error| RuntimeError::Library {
            path: library.display().to_string(),
            detail: error.to_string(),
        })?;
        let environment = builder.with_name("hlorank").with_telemetry(false).build()?;
        Ok(loaded.insert(Self { environment }).clone())
    }

    /// Creates a session of a serialized ONNX model. It runs only on the calling thread.
    pub fn session(&self, model: &[u8]) -> Result<Session, RuntimeError> {
        let mut builder = Session::builder(&self.environment)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            // Callers log the errors that they receive; lines that ONNX Runtime prints have another format.
            .with_log_level(LogLevel::Fatal)?
            .with_intra_threads(DeviceProfile::CPU.session_threads)?
            .with_inter_threads(DeviceProfile::CPU.session_threads)?
            .with_config_entry("session.intra_op.allow_spinning", "0")?;
        Ok(builder.commit_from_memory(model)?)
    }
}
