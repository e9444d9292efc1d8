use std::{
    collections::BTreeSet,
    fs::{DirEntry, read_dir},
    sync::Arc,
};

use crossbeam_channel::bounded;
use hlorank_graph::Task;
use tokio::{runtime::Handle, sync::watch};

use super::{
    error::RegistryError,
    folder,
    lanes::Lanes,
    loader::Loader,
    policy::Policies,
    report::ModelReport,
    selection::{SelectError, Selection, VersionInUse, Wanted},
    settings::RegistrySettings,
    shared::Shared,
    version_loader::VersionLoader,
};
use crate::{
    engine::Engine,
    metrics::Metrics,
    model::{Model, Rejection, Target},
    runtime::Runtime,
};

/// The models of a folder, kept up to date until the registry is dropped.
pub struct Registry {
    pub(super) shared: Arc<Shared>,
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
        require_found(&mut settings)?;
        // One message is enough: it stands for every change until the loader scans.
        let (wake, woken) = bounded(1);
        let shared = Arc::new(Shared::new(&settings, wake, metrics));
        let registry = Self {
            shared: Arc::clone(&shared),
        };
        let timers = Handle::current();
        let versions = VersionLoader {
            shared: Arc::clone(&shared),
            settings,
            runtime,
            engine,
            timers,
        };
        let lanes = Lanes::start(versions).map_err(RegistryError::Thread)?;
        let mut loader = Loader::new(shared, lanes, woken);
        loader.update();
        // A version that takes long holds up the start only if its default model has no other.
        while loader.is_loading()
            && (registry.failing_default().is_some() || registry.serves_nothing())
        {
            loader.update_again();
        }
        registry.check_defaults()?;
        loader.spawn().map_err(RegistryError::Thread)?;
        Ok(registry)
    }

    fn check_defaults(&self) -> Result<(), RegistryError> {
        match self.failing_default() {
            // An empty folder is allowed: measurements answer what calls describe themselves.
            None if self.lacks_models() => Err(self.no_model()),
            None => Ok(()),
            Some((task, source @ SelectError::WrongTask { .. })) => {
                Err(RegistryError::WrongDefault { task, source })
            }
            Some((task, _)) => Err(self.missing_default(task)),
        }
    }

    /// Returns a task whose default model is required and does not answer, and the reason.
    #[must_use]
    pub fn failing_default(&self) -> Option<(Task, SelectError)> {
        let serving = self.shared.serving.load();
        let mut tasks = serving.defaults.required.iter().copied();
        tasks.find_map(|task| Some((task, serving.select("", &Wanted::Any, None, task).err()?)))
    }

    /// Returns whether no model can answer any call.
    #[must_use]
    pub fn serves_nothing(&self) -> bool {
        self.shared.serving.load().models.is_empty()
    }

    /// Whether no model serves although the model folder has folders.
    #[must_use]
    pub fn lacks_models(&self) -> bool {
        let is_folder = |entry: &DirEntry| {
            let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
            !is_hidden && entry.path().is_dir()
        };
        self.serves_nothing()
            && read_dir(&self.shared.folder).map_or(true, |entries| {
                entries.flatten().any(|entry| is_folder(&entry))
            })
    }

    fn missing_default(&self, task: Task) -> RegistryError {
        let name = self.shared.serving.load().defaults.name(task).to_owned();
        let reason = self.rejections(|of| of == name);
        RegistryError::MissingDefault {
            name,
            task,
            path: self.shared.folder.display().to_string(),
            reason,
        }
    }

    fn no_model(&self) -> RegistryError {
        RegistryError::NoModel {
            path: self.shared.folder.display().to_string(),
            reason: self.rejections(|_| true),
        }
    }

    /// Says in parentheses why versions of some models were rejected; empty if none was.
    fn rejections(&self, is_of: impl Fn(&str) -> bool) -> String {
        let reports = self
            .models()
            .into_iter()
            .filter(|report| is_of(&report.name));
        let rejected =
            reports.filter_map(|report| Some((report.name, report.version, report.rejection?)));
        let rejected: Vec<String> = rejected
            .map(|(name, version, Rejection { message, .. })| {
                format!("{name}/{version}: {message}")
            })
            .collect();
        if rejected.is_empty() {
            String::new()
        } else {
            format!(" ({})", rejected.join("; "))
        }
    }

    /// Returns the versions that may answer a request for a model. An empty name means the model of the task that suits the
    /// target best, or else the default one.
    pub fn select(
        &self,
        name: &str,
        wanted: &Wanted,
        target: Option<&Target>,
        task: Task,
    ) -> Result<Selection, SelectError> {
        let serving = self.shared.serving.load();
        serving.select(name, wanted, target, task)
    }

    /// Returns the versions that may answer a request about a graph of a feature set. An empty name means the default model of
    /// the set.
    pub fn select_for_set(
        &self,
        name: &str,
        wanted: &Wanted,
        target: Option<&Target>,
        set: &str,
    ) -> Result<Selection, SelectError> {
        let serving = self.shared.serving.load();
        serving.select_for_set(name, wanted, target, set)
    }

    /// Returns the compilers that the models of a task were trained for, if an operator did not choose one of the models.
    #[must_use]
    pub fn compilers(&self, task: Task) -> BTreeSet<String> {
        self.shared.serving.load().compilers(task)
    }

    /// Returns a version of a model, whatever its task; the stable one for [`Wanted::Any`].
    pub fn version(&self, name: &str, wanted: &Wanted) -> Result<Arc<Model>, SelectError> {
        self.shared
            .serving
            .load()
            .find(name, wanted)
            .map(|selection| selection.stable)
    }

    /// Returns the versions of all models that answer calls which name no version.
    #[must_use]
    pub fn in_use(&self) -> Vec<VersionInUse> {
        self.shared.serving.load().in_use()
    }

    /// Reports every version of every model, by name, then version.
    #[must_use]
    pub fn models(&self) -> Vec<ModelReport> {
        let catalogue = self.shared.catalogue();
        // Loaded while the catalogue is locked, so that both are of one moment.
        let serving = self.shared.serving.load();
        let reports = catalogue.reports().map(|(versions, report)| {
            let is_default = |model: &Arc<Model>| serving.is_default(model, versions.name());
            let is_default = report.model.as_ref().is_some_and(is_default);
            ModelReport::new(versions, report, is_default)
        });
        reports.collect()
    }

    /// Returns the names of the models that serve now.
    #[must_use]
    pub fn serving_names(&self) -> Vec<String> {
        self.shared.serving.load().models.keys().cloned().collect()
    }

    /// Stops the loader. Calls that wait for it fail, and nothing changes any more.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Returns a receiver that is notified of every change.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<()> {
        self.shared.changes.subscribe()
    }
}

/// Fails if the model folder or its policies cannot be read, and requires the default models that it has.
fn require_found(settings: &mut RegistrySettings) -> Result<(), RegistryError> {
    let found = folder::scan(&settings.folder).map_err(|source| RegistryError::Folder {
        path: settings.folder.display().to_string(),
        source,
    })?;
    settings
        .defaults
        .require_found(|name| found.models.contains_key(name));
    Policies::read(&settings.folder)?;
    Ok(())
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.shared.stop();
    }
}
