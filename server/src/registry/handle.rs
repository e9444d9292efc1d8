use std::{
    fs::{DirEntry, read_dir},
    sync::Arc,
};

use arc_swap::Guard;
use crossbeam_channel::bounded;
use tokio::{runtime::Handle, sync::watch};

use super::{
    catalogue::CatalogueState,
    error::RegistryError,
    folder,
    lanes::Lanes,
    loader::Loader,
    policy::Policies,
    serving::{SelectError, ServingModels},
    settings::RegistrySettings,
    version_loader::VersionLoader,
    versions::ModelReport,
};
use crate::{engine::Engine, metrics::Metrics, model::Rejection, runtime::Runtime};

/// The models of a folder, kept up to date until the registry is dropped.
pub struct Registry {
    pub(super) shared: Arc<CatalogueState>,
}

impl Registry {
    /// Loads the versions that should serve, and starts the thread that scans for new ones. Blocks until every wanted
    /// version was tried; a version that takes long is waited for only if a default model has no other. Must be called
    /// on a thread of a tokio runtime. A rejected version is logged and left out. A required default model that does not serve is an
    /// error, and so is a folder from which no model serves. `engine` forgets the embeddings of models that are freed.
    pub fn open(
        mut settings: RegistrySettings,
        runtime: Runtime,
        engine: Arc<Engine>,
        metrics: Arc<Metrics>,
    ) -> Result<Self, RegistryError> {
        let found = folder::scan(&settings.folder).map_err(|error| {
            RegistryError(format!(
                "cannot read the model folder `{}`: {error}; start the server in a checkout of hlorank, which has the \
                 folder models/registry, or set --models or HLORANK_MODELS to a folder with NAME/VERSION/manifest.json",
                settings.folder.display()
            ))
        })?;
        let defaults = &mut settings.defaults;
        defaults.require_found(|name| found.models.contains_key(name));
        Policies::read(&settings.folder).map_err(|error| RegistryError(error.to_string()))?;
        // One message is enough: it stands for every change until the loader scans.
        let (wake, woken) = bounded(1);
        let shared = Arc::new(CatalogueState::new(&settings, wake, metrics));
        let registry = Self {
            shared: Arc::clone(&shared),
        };
        let versions = VersionLoader {
            shared: Arc::clone(&shared),
            settings,
            runtime,
            engine,
            timers: Handle::current(),
        };
        let thread_failed = |error| {
            RegistryError(format!(
                "cannot start the threads that load models: {error}"
            ))
        };
        let lanes = Lanes::start(versions).map_err(thread_failed)?;
        let mut loader = Loader::new(shared, lanes, woken);
        // A version that takes long holds up the start only if its default model has no other.
        loader.update_until(|| {
            let serving = registry.serving();
            serving.failing_default().is_none() && serving.names().next().is_some()
        });
        registry.check_defaults()?;
        loader.spawn().map_err(thread_failed)?;
        Ok(registry)
    }

    fn check_defaults(&self) -> Result<(), RegistryError> {
        let folder = self.shared.folder.display();
        let serving = self.serving();
        let message = match serving.failing_default() {
            // An empty folder is allowed: measurements answer what calls describe themselves.
            None if !self.lacks_models() => return Ok(()),
            None => format!(
                "no model could be loaded from `{folder}`{}; set --models or HLORANK_MODELS to a folder with \
                 NAME/VERSION/manifest.json, such as models/registry",
                self.rejections(|_| true)
            ),
            Some((task, error @ SelectError::WrongTask(_))) => {
                format!("--default-models {task}=MODEL: {error}")
            }
            Some((task, _)) => {
                let name = serving.defaults.name(task);
                format!(
                    "no version of model `{name}`, the default for {task} configurations, could be loaded from \
                     `{folder}`{}; set --models or HLORANK_MODELS to a folder that contains it, restore models/registry, \
                     run `make train`, or name another model with --default-models {task}=MODEL",
                    self.rejections(|of| of == name)
                )
            }
        };
        Err(RegistryError(message))
    }

    /// Says in parentheses why versions of some models were rejected; empty if none was.
    fn rejections(&self, is_of: impl Fn(&str) -> bool) -> String {
        let reports = self.models().into_iter();
        let rejected = reports.filter_map(|report| {
            let Rejection { message, .. } = report.rejection?;
            let ModelReport { name, version, .. } = report;
            is_of(&name).then(|| format!("{name}/{version}: {message}"))
        });
        let rejected: Vec<String> = rejected.collect();
        match rejected.len() {
            0 => String::new(),
            _ => format!(" ({})", rejected.join("; ")),
        }
    }

    /// Whether no model serves although the model folder has folders.
    pub fn lacks_models(&self) -> bool {
        let is_folder = |entry: DirEntry| {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            !is_hidden && entry.path().is_dir()
        };
        // A folder that cannot be read may have models.
        let has_folders = || {
            let entries = read_dir(&self.shared.folder);
            entries.map_or(true, |entries| entries.flatten().any(is_folder))
        };
        self.serving().names().next().is_none() && has_folders()
    }

    /// Returns the versions that answer requests now. Calls keep what they select from it, not the snapshot.
    pub fn serving(&self) -> Guard<Arc<ServingModels>> {
        self.shared.serving.load()
    }

    /// Reports every version of every model, by name, then version.
    pub fn models(&self) -> Vec<ModelReport> {
        let catalogue = self.shared.catalogue();
        // Loaded while the catalogue is locked, so that both are of one moment.
        let serving = self.serving();
        catalogue.reports(|model, name| serving.is_default(model, name))
    }

    /// Stops the loader. Calls that wait for it fail, and nothing changes any more.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns a receiver that is notified of every change.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
