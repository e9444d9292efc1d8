//! Models of the tests, and how to load them without a server.

use std::{fs, path::PathBuf, sync::Arc};

use hlorank_graph::Task;
use hlorank_server::{model::Model, runtime::Runtime};

use crate::{fixture, onnxruntime};

/// The tile model of most tests. It ranks tiles of one's own loops on XLA:CPU, which no compiler takes, so it does not ship.
pub const TILE_MODEL: &str = "tile-xla-cpu";

/// A smaller model of the same tiles, without a Transformer layer.
pub const SMALL_TILE_MODEL: &str = "tile-xla-cpu-sage";

/// Returns the folder of the models that servers of tests serve: the layouts' that ships, as a link, and both tile models.
pub fn models() -> PathBuf {
    fixture("models")
}

/// Returns the folder of [`models`] and all that ship, as links, which take four times as long to load.
pub fn all_models() -> PathBuf {
    fixture("all-models")
}

/// Returns the server flag that selects [`all_models`].
pub fn all_models_flag() -> String {
    format!("--models={}", all_models().display())
}

/// Loads the newest version of the default model of a task, with sessions for this number of workers.
///
/// # Panics
/// If the model does not load. The message says what to run.
pub fn load_model(task: Task, workers: usize) -> Arc<Model> {
    let runtime = Runtime::load(&onnxruntime()).unwrap_or_else(|error| panic!("{error}"));
    let versions = all_models().join(format!("{task}-xla-cpu"));
    let entries =
        fs::read_dir(&versions).unwrap_or_else(|error| panic!("{}: {error}", versions.display()));
    let newest = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u64>().ok())
        .max()
        .expect("a model has a version");
    let folder = versions.join(newest.to_string());
    Arc::new(Model::load(&folder, &runtime, workers).unwrap_or_else(|error| panic!("{error}")))
}
