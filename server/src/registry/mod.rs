//! The life of models: which versions are there, which of them serve, and how a new one takes over.
//!
//! Threads of low priority look for versions, load and check them, and publish what serves by one atomic pointer. A request holds the version that it began with; a version that serves no more is freed after the last one.

mod admin;
mod catalogue;
mod folder;
mod loader;
mod policy;
mod serving;
mod shared;
mod validation;
mod versions;

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

pub use admin::AdminError;
use crossbeam_channel::bounded;
use hlorank_graph::Task;
pub use policy::{CanarySplit, Policy, PolicyError};
pub use serving::{Defaults, SelectError, Selection, Wanted};
use tokio::sync::watch;

use self::{loader::Loader, shared::Shared, validation::Bench};
use crate::{
    compute::Worker,
    engine::Engine,
    metrics::Metrics,
    model::{Model, ModelState, Rejection},
    runtime::Runtime,
};

/// The models of a folder, kept up to date until it is dropped.
pub struct Registry {
    shared: Arc<Shared>,
}

/// Where models come from, and what a version must show before it serves.
#[derive(Clone, Debug)]
pub struct RegistrySettings {
    /// Holds `NAME/VERSION/manifest.json`, and `policy.json`.
    pub folder: PathBuf,
    /// The models of requests that name none.
    pub defaults: Defaults,
    /// Workers of the compute pool; each has a session of every loaded model.
    pub workers: usize,
    /// Versions of a model that stay loaded beside those that serve.
    pub retain: usize,
    /// How many times as long as the serving version a new one may take for its golden cases.
    pub max_slowdown: f64,
    /// Between two looks at the folder.
    pub poll: Duration,
}

/// One version of one model.
#[derive(Clone)]
pub struct ModelReport {
    /// Name of the model.
    pub name: String,
    /// Version, from 1.
    pub version: u64,
    /// Where it is in its life.
    pub state: ModelState,
    /// When it got there.
    pub since: SystemTime,
    /// Why it was rejected, where it was.
    pub rejection: Option<Rejection>,
    /// Where it is loaded.
    pub model: Option<Arc<Model>>,
    /// Whether requests that give no version reach it, but for a canary's.
    pub stable: bool,
    /// The percentage of graphs that it serves as the canary.
    pub canary_percent: Option<u8>,
    /// Whether the policy names it as the one to serve.
    pub pinned: bool,
    /// Whether requests that name no model reach this model.
    pub default_for_task: bool,
}

/// Why there is no registry to serve from.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The folder cannot be read.
    #[error(
        "cannot read the model folder `{path}`: {source}; give it with --models, or train models with `make train`"
    )]
    Folder {
        /// The folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
    /// The policies cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A model that is a default ranks something else.
    #[error("--default-{task}-model: {source}")]
    WrongDefault {
        /// What it should rank.
        task: Task,
        /// What it ranks.
        source: SelectError,
    },
    /// A model that is a default did not load.
    #[error(
        "no version of model `{name}`, the default for {task} configurations, could be loaded from `{path}`{reason}; \
         restore models/registry, run `make train`, or name another with --default-{task}-model"
    )]
    MissingDefault {
        /// The model.
        name: String,
        /// Its task.
        task: Task,
        /// The folder.
        path: String,
        /// Why its versions were rejected; empty if there are none.
        reason: String,
    },
    /// The threads that load and check models could not be started.
    #[error("cannot start the threads that load models: {0}")]
    Thread(std::io::Error),
}

/// Why a look at the model folder learnt nothing, or not all.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LookError {
    /// The folder cannot be read.
    #[error("cannot read the model folder `{path}`: {detail}")]
    Folder {
        /// The folder.
        path: String,
        /// Why.
        detail: String,
    },
    /// The policies cannot be read; those that were known go on.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

impl Registry {
    /// Loads what should serve, and goes on looking for versions; `engine` forgets the embeddings of models that are
    /// freed. Blocks until everything that is wanted was tried. A version that is rejected is logged and left out; a missing
    /// default is an error.
    pub fn open(
        settings: RegistrySettings,
        runtime: Runtime,
        engine: Arc<Engine>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, RegistryError> {
        folder::look(&settings.folder).map_err(|source| RegistryError::Folder {
            path: settings.folder.display().to_string(),
            source,
        })?;
        policy::Policies::read(&settings.folder)?;
        let benches = (0..settings.workers).map(|worker| Bench::new(Worker(worker)));
        let benches = benches.collect::<Result<_, _>>().map_err(RegistryError::Thread)?;
        let (wake, woken) = bounded(1);
        let shared = Arc::new(Shared::new(&settings, wake, metrics));
        let registry = Self { shared: Arc::clone(&shared) };
        let (watched, problems) = (None, Vec::new());
        let mut loader = Loader { shared, settings, runtime, engine, woken, benches, watched, problems };
        loader.look();
        registry.check_defaults()?;
        loader.spawn().map_err(RegistryError::Thread)?;
        Ok(registry)
    }

    fn check_defaults(&self) -> Result<(), RegistryError> {
        for task in [Task::Layout, Task::Tile] {
            match self.select("", &Wanted::Any, task) {
                Ok(_) => {}
                Err(source @ SelectError::WrongTask { .. }) => {
                    return Err(RegistryError::WrongDefault { task, source });
                }
                Err(_) => return Err(self.missing_default(task)),
            }
        }
        Ok(())
    }

    fn missing_default(&self, task: Task) -> RegistryError {
        let name = self.shared.serving.load().defaults.name(task).to_owned();
        let reports = self.models().into_iter().filter(|report| report.name == name);
        let rejected = reports.filter_map(|report| Some((report.version, report.rejection?)));
        let rejected: Vec<String> = rejected
            .map(|(version, Rejection { message, .. })| format!("{name}/{version}: {message}"))
            .collect();
        let reason = if rejected.is_empty() { String::new() } else { format!(" ({})", rejected.join("; ")) };
        RegistryError::MissingDefault { name, task, path: self.shared.folder.display().to_string(), reason }
    }

    /// What may answer a request for a model: the default of the task for an empty name.
    pub fn select(&self, name: &str, wanted: &Wanted, task: Task) -> Result<Selection, SelectError> {
        self.shared.serving.load().select(name, wanted, task)
    }

    /// Every version of every model, by name, then version.
    #[must_use]
    pub fn models(&self) -> Vec<ModelReport> {
        let catalogue = self.shared.catalogue();
        let reports = catalogue.reports().map(|(versions, report)| {
            let (policy, name) = (versions.policy(), versions.name());
            let model = report.model;
            let default = model
                .as_ref()
                .is_some_and(|model| catalogue.defaults().name(model.manifest().task()) == name);
            let canary = policy.canary.filter(|split| split.version == report.version);
            let canary = canary.filter(|_| report.state == ModelState::Serving);
            ModelReport {
                name: name.to_owned(),
                version: report.version,
                state: report.state,
                since: report.since,
                rejection: report.rejection,
                stable: versions.stable() == Some(report.version),
                canary_percent: canary.map(|split| split.percent),
                pinned: policy.pinned == Some(report.version),
                default_for_task: default,
                model,
            }
        });
        reports.collect()
    }

    /// The names that requests may give at this moment.
    #[must_use]
    pub fn serving_names(&self) -> Vec<String> {
        self.shared.serving.load().models.keys().cloned().collect()
    }

    /// Ends the loader: what waits for it fails, and nothing changes any more.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Tells whenever something changed.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
