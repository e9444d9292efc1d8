//! The loaded models, and which of them serves.

mod artifact;
mod config_input;
mod interface;
mod manifest;
mod model;
mod segment;
mod whole_graph;

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

pub use artifact::ArtifactError;
pub use config_input::ConfigInput;
use hlorank_graph::Task;
pub use manifest::{Manifest, MeasuredQuality, ModelKind};
pub use model::{Model, ModelFailed};
pub use segment::EncoderInput;
pub use whole_graph::WholeGraphInput;

use crate::runtime::Runtime;

/// Every loaded model version. The newest version of a name serves.
pub struct Registry {
    models: BTreeMap<(String, u64), Arc<Model>>,
    defaults: Defaults,
}

/// The model of each task for requests that name none.
#[derive(Clone, Debug)]
pub struct Defaults {
    /// For layouts.
    pub layout: String,
    /// For tiles.
    pub tile: String,
}

impl Defaults {
    /// The name for a task.
    #[must_use]
    pub fn name(&self, task: Task) -> &str {
        match task {
            Task::Layout => &self.layout,
            Task::Tile => &self.tile,
        }
    }
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
}

/// Why a request's model was not found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No such name.
    #[error("no model is named `{name}`; loaded are {loaded}")]
    UnknownName {
        /// What was asked for.
        name: String,
        /// The names there are.
        loaded: String,
    },
    /// No such version.
    #[error("model `{name}` has no version {version}; loaded are {loaded}")]
    UnknownVersion {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
        /// The versions there are.
        loaded: String,
    },
    /// A model of the other task.
    #[error("model `{name}` ranks {model} configurations, but the batch holds {batch} configurations")]
    WrongTask {
        /// The model.
        name: String,
        /// What it ranks.
        model: Task,
        /// What was sent.
        batch: Task,
    },
}

/// Characters of an unknown name that an error shows.
const SHOWN_NAME: usize = 80;

impl Registry {
    /// Loads every artifact `NAME/VERSION` of a folder, with a session for each worker. An artifact that fails
    /// is logged and left out; a missing default is an error.
    pub fn load(
        folder: &Path,
        defaults: Defaults,
        runtime: &Runtime,
        workers: usize,
    ) -> Result<Self, RegistryError> {
        let mut registry = Self { models: BTreeMap::new(), defaults };
        let mut rejected = Vec::new();
        for version_folder in version_folders(folder)? {
            match Model::load(&version_folder, runtime, workers) {
                Ok(model) => registry.insert(model),
                Err(error) => {
                    let version = version_folder.strip_prefix(folder).unwrap_or(&version_folder).display();
                    tracing::error!(artifact = %version, %error, "artifact rejected");
                    rejected.push(format!("{version}: {error}"));
                }
            }
        }
        registry.check_defaults(folder, &rejected)?;
        Ok(registry)
    }

    fn insert(&mut self, model: Model) {
        let manifest = model.manifest();
        tracing::info!(model = manifest.name, version = manifest.version, task = %manifest.task(), "artifact loaded");
        self.models.insert((manifest.name.clone(), manifest.version), Arc::new(model));
    }

    fn check_defaults(&self, folder: &Path, rejected: &[String]) -> Result<(), RegistryError> {
        for task in [Task::Layout, Task::Tile] {
            let name = self.defaults.name(task);
            let selected = self.select(name, 0, task);
            if let Err(source @ SelectError::WrongTask { .. }) = selected {
                return Err(RegistryError::WrongDefault { task, source });
            }
            if selected.is_err() {
                let own = rejected.iter().filter(|reason| reason.starts_with(&format!("{name}/")));
                let own: Vec<&str> = own.map(String::as_str).collect();
                let reason = if own.is_empty() { String::new() } else { format!(" ({})", own.join("; ")) };
                let path = folder.display().to_string();
                return Err(RegistryError::MissingDefault { name: name.to_owned(), task, path, reason });
            }
        }
        Ok(())
    }

    /// Every loaded version, by name, then version.
    pub fn models(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.models.values()
    }

    /// The version of a model that a request gets: the default of the task for an empty name, the newest for
    /// version 0.
    pub fn select(&self, name: &str, version: u64, task: Task) -> Result<&Arc<Model>, SelectError> {
        let name = if name.is_empty() { self.defaults.name(task) } else { name };
        let model = self.find(name, version)?;
        match model.manifest().task() {
            own if own == task => Ok(model),
            own => Err(SelectError::WrongTask { name: name.to_owned(), model: own, batch: task }),
        }
    }

    /// A version of a model; the newest for version 0.
    pub fn find(&self, name: &str, version: u64) -> Result<&Arc<Model>, SelectError> {
        let versions = || self.models.range((name.to_owned(), 0)..=(name.to_owned(), u64::MAX));
        let newest = versions().next_back().ok_or_else(|| self.unknown_name(name))?;
        if version == 0 {
            return Ok(newest.1);
        }
        self.models.get(&(name.to_owned(), version)).ok_or_else(|| {
            let loaded: Vec<String> = versions().map(|((_, version), _)| version.to_string()).collect();
            SelectError::UnknownVersion { name: name.to_owned(), version, loaded: loaded.join(", ") }
        })
    }

    fn unknown_name(&self, name: &str) -> SelectError {
        let mut names: Vec<String> = self.models.keys().map(|(name, _)| format!("`{name}`")).collect();
        names.dedup();
        // Whoever asks may have made it megabytes long.
        let name = name.chars().take(SHOWN_NAME).collect();
        SelectError::UnknownName { name, loaded: names.join(", ") }
    }

    /// Whether requests that give no version reach this model.
    #[must_use]
    pub fn serves(&self, model: &Model) -> bool {
        let manifest = model.manifest();
        self.find(&manifest.name, 0).is_ok_and(|newest| newest.manifest().version == manifest.version)
    }

    /// Whether requests that name no model reach this one.
    #[must_use]
    pub fn is_default(&self, model: &Model) -> bool {
        let manifest = model.manifest();
        self.serves(model) && self.defaults.name(manifest.task()) == manifest.name
    }
}

/// The folders `NAME/VERSION` that hold a manifest; a version without one does not exist yet.
fn version_folders(folder: &Path) -> Result<Vec<std::path::PathBuf>, RegistryError> {
    let subfolders = |folder: &Path| -> std::io::Result<Vec<std::path::PathBuf>> {
        let entries = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
        Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect())
    };
    let error = |source| RegistryError::Folder { path: folder.display().to_string(), source };
    let mut versions = Vec::new();
    for name in subfolders(folder).map_err(error)? {
        versions.extend(subfolders(&name).map_err(error)?);
    }
    versions.retain(|version| version.join(manifest::FILE_NAME).is_file());
    versions.sort();
    Ok(versions)
}
