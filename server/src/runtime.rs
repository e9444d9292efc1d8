//! ONNX Runtime: its library, and sessions of one thread each.

use std::{path::Path, sync::Mutex};

use ort::{
    environment::Environment,
    logging::LogLevel,
    session::{Session, builder::GraphOptimizationLevel},
};

/// Why ONNX Runtime could not be used.
#[derive(Debug, thiserror::Error)]
pub enum RuntimeError {
    /// The library cannot be loaded.
    #[error(
        "cannot load ONNX Runtime from `{path}`: {detail}; run `make setup`, or give its path with --onnxruntime"
    )]
    Library {
        /// The path tried.
        path: String,
        /// What the loader said.
        detail: String,
    },
    /// A session cannot be made or run.
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

/// ONNX Runtime allows one environment a process, so servers of one process share it.
static LOADED: Mutex<Option<Runtime>> = Mutex::new(None);

impl Runtime {
    /// Loads the library; a second call in a process gets the one already loaded.
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

    /// Makes a session of a serialized ONNX model that runs on the calling thread alone.
    pub fn session(&self, model: &[u8]) -> Result<Session, RuntimeError> {
        let mut builder = Session::builder(&self.environment)?
            .with_optimization_level(GraphOptimizationLevel::All)?
            // Errors come back and are logged by whoever gets them: its own lines have another form than ours.
            .with_log_level(LogLevel::Fatal)?
            .with_intra_threads(1)?
            .with_inter_threads(1)?
            .with_config_entry("session.intra_op.allow_spinning", "0")?;
        Ok(builder.commit_from_memory(model)?)
    }
}
