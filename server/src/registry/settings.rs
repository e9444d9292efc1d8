use std::{path::PathBuf, time::Duration};

use hlorank_graph::Task;

use crate::model::ModelKeys;

/// Where models come from, and what a version must pass before it serves.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// The folder with `NAME/VERSION/manifest.json` and `policy.json`.
    pub folder: PathBuf,
    /// Keys of which one must have signed each version; `None` if no version needs a signature.
    pub keys: Option<ModelKeys>,
    /// The models of requests that name none.
    pub defaults: Defaults,
    /// Number of workers of the compute pool. Each has a session of every loaded model.
    pub workers: usize,
    /// Number of versions per model that stay loaded beside those that serve.
    pub retain: usize,
    /// Maximum time for a version's golden cases, as a multiple of the serving version's time.
    pub max_slowdown: f64,
    /// Maximum time to load and check a version.
    pub max_load: Duration,
    /// Interval between scans of the folder.
    pub poll: Duration,
}

/// The models that answer requests which name none.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    /// By task, for all tasks but `feature-set`.
    pub tasks: Vec<(Task, String)>,
    /// The tasks whose default model must serve before the server is ready. Those whose model the folder has join them when the
    /// registry opens.
    pub required: Vec<Task>,
    /// The tasks whose default model the operator chose. It answers whatever target a call names.
    pub chosen: Vec<Task>,
    /// By feature set, for those that several models take.
    pub feature_sets: Vec<(String, String)>,
}

impl Defaults {
    /// Requires the default models that the folder has.
    pub(super) fn require_found(&mut self, is_found: impl Fn(&str) -> bool) {
        let found = self
            .tasks
            .iter()
            .filter(|(_, name)| is_found(name))
            .map(|(task, _)| *task);
        let missing: Vec<Task> = found.filter(|task| !self.required.contains(task)).collect();
        self.required.extend(missing);
    }

    /// Returns the name of a task's default model; empty if it has none.
    pub fn name(&self, task: Task) -> &str {
        self.tasks
            .iter()
            .find(|(of, _)| *of == task)
            .map_or("", |(_, name)| name)
    }

    /// Returns the name of the default model of a feature set, if it has one.
    pub fn of_feature_set(&self, set: &str) -> Option<&str> {
        self.feature_sets
            .iter()
            .find(|(of, _)| of == set)
            .map(|(_, name)| name.as_str())
    }
}
