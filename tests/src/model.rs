//! Models of the repository, loaded without a server.

use std::{fs, sync::Arc};

use hlorank_graph::Task;
use hlorank_server::{model::Model, runtime::Runtime};

use crate::{onnxruntime, repository};

/// Loads the newest version of the default model of a task, with sessions for this number of workers.
///
/// # Panics
/// If the model does not load. The message says what to run.
#[must_use]
pub fn load_model(task: Task, workers: usize) -> Arc<Model> {
    let runtime = Runtime::load(&onnxruntime()).unwrap_or_else(|error| panic!("{error}"));
    let versions = repository(&format!("models/registry/{task}-xla-cpu"));
    let versions =
        fs::read_dir(&versions).unwrap_or_else(|error| panic!("{}: {error}", versions.display()));
    let newest = versions
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok())
        .max()
        .expect("a model has a version");
    let folder = repository(&format!("models/registry/{task}-xla-cpu/{newest}"));
    Arc::new(Model::load(&folder, &runtime, workers).unwrap_or_else(|error| panic!("{error}")))
}
