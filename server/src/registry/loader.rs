//! The thread that looks for versions, loads and checks them, and frees those that nobody needs.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, RecvTimeoutError};
use futures::executor::block_on;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{
    RegistrySettings, Rejection, Shared,
    folder::{look, version_folder},
    policy::Policies,
    validation::{GoldenCases, ValidationError},
};
use crate::{
    compute::{ComputePool, Worker, yield_to_others},
    engine::Engine,
    model::{Artifact, Model},
    runtime::Runtime,
};

pub(super) struct Loader {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: RegistrySettings,
    pub(super) runtime: Runtime,
    pub(super) engine: Arc<Engine>,
    pub(super) woken: Receiver<()>,
}

/// How long files must not have changed before they are read: a folder is copied file by file.
const QUIET: Duration = Duration::from_millis(50);

/// How long is waited for that at most.
const MAX_QUIET: Duration = Duration::from_secs(1);

/// How often to see whether the last request of a version is done.
const UNLOAD_INTERVAL: Duration = Duration::from_millis(100);

impl Loader {
    /// Goes on until the registry is dropped.
    pub(super) fn spawn(self) -> std::io::Result<()> {
        thread::Builder::new().name("model-loader".to_owned()).spawn(move || {
            yield_to_others();
            self.run();
        })?;
        Ok(())
    }

    fn run(self) {
        let _watcher = self.watch();
        let mut looked = Instant::now();
        while !self.shared.stopping.load(Ordering::Acquire) {
            let due = self.settings.poll.saturating_sub(looked.elapsed());
            let leaving = self.shared.catalogue().is_any_leaving();
            match self.woken.recv_timeout(if leaving { due.min(UNLOAD_INTERVAL) } else { due }) {
                Err(RecvTimeoutError::Timeout) if !due.is_zero() && leaving => self.unload_unused(),
                Err(RecvTimeoutError::Disconnected) => return,
                woken => {
                    if woken.is_ok() {
                        self.wait_for_quiet();
                    }
                    self.look();
                    looked = Instant::now();
                }
            }
        }
        // Nobody will do what they wait for.
        self.shared.catalogue().waiting.clear();
    }

    /// Wakes this thread when a file of the model folder changes, where the disk tells.
    fn watch(&self) -> Option<RecommendedWatcher> {
        let wake = self.shared.wake.clone();
        let changed = move |event: notify::Result<notify::Event>| {
            if event.is_ok_and(|event| event.kind.is_access()) {
                return;
            }
            // It is awake, or will be.
            let _ = wake.try_send(());
        };
        let folder: &Path = &self.settings.folder;
        let watcher = notify::recommended_watcher(changed).and_then(|mut watcher| {
            watcher.watch(folder, RecursiveMode::Recursive)?;
            Ok(watcher)
        });
        watcher.inspect_err(|error| {
            let poll = self.settings.poll;
            tracing::warn!(%error, "changes of the model folder are not told; it is looked at every {poll:?}");
        }).ok()
    }

    fn wait_for_quiet(&self) {
        let started = Instant::now();
        while started.elapsed() < MAX_QUIET && self.woken.recv_timeout(QUIET).is_ok() {}
    }

    /// Looks at the model folder, and does everything that there is to do.
    pub(super) fn look(&self) {
        let waiting = std::mem::take(&mut self.shared.catalogue().waiting);
        let folder = &self.settings.folder;
        match Policies::read(folder) {
            Ok(policies) if self.shared.catalogue().policies() == &policies => {}
            Ok(policies) => self.shared.change(|catalogue| catalogue.set_policies(policies)),
            Err(error) => tracing::error!(%error, "the policies stay what they were"),
        }
        match look(folder) {
            Ok(found) => self.shared.change(|catalogue| catalogue.found(found)),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "cannot look at the model folder");
            }
        }
        while let Some((name, version)) = self.next_to_load() {
            self.load(&name, version);
        }
        self.unload_unused();
        for waiter in waiting {
            // An error means that it waits no more.
            let _ = waiter.send(());
        }
    }

    fn next_to_load(&self) -> Option<(String, u64)> {
        if self.shared.stopping.load(Ordering::Acquire) {
            return None;
        }
        self.shared.catalogue().next_to_load()
    }

    fn load(&self, name: &str, version: u64) {
        let started = Instant::now();
        self.shared.with_model(name, |versions| versions.validating(version));
        // What a broken artifact may do to the libraries that read it is not known.
        let prepared = catch_unwind(AssertUnwindSafe(|| self.prepare(name, version)));
        let prepared = prepared.unwrap_or_else(|_| {
            let message = "the server failed while it checked the artifact; its log tells where".to_owned();
            Err(Rejection { reason: "SERVER_FAILED", message })
        });
        let (metrics, took) = (&self.shared.metrics, started.elapsed());
        metrics.loading.tried(&metrics.model(name).versions, prepared.as_ref().err(), took);
        match prepared {
            Ok(model) => self.shared.with_model(name, |versions| versions.loaded(version, model)),
            Err(rejection) => self.shared.with_model(name, |versions| versions.rejected(version, rejection)),
        }
    }

    /// Reads, checks and warms up a version.
    fn prepare(&self, name: &str, version: u64) -> Result<Arc<Model>, Rejection> {
        let workers = self.settings.workers;
        let (model, golden) = self.validate(name, version)?;
        self.shared.with_model(name, |versions| versions.warming(version));
        (1..workers).try_for_each(|worker| golden.check(&model, Worker(worker)))?;
        self.recompute(&model);
        Ok(model)
    }

    /// Evaluates what the version before was asked for last, where that was asked for.
    fn recompute(&self, model: &Arc<Model>) {
        let (started, manifest) = (Instant::now(), model.manifest());
        let recomputed =
            ComputePool::background(Worker(0)).map_err(|error| error.to_string()).and_then(|pool| {
                block_on(self.engine.recompute(model, Arc::new(pool))).map_err(|error| error.to_string())
            });
        let (name, version, took) = (&manifest.name, manifest.version, started.elapsed());
        match recomputed {
            Ok(graphs) => tracing::debug!(model = name, version, graphs, ?took, "embeddings recomputed"),
            Err(error) => tracing::warn!(model = name, version, error, "embeddings were not recomputed"),
        }
    }

    fn validate(&self, name: &str, version: u64) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let artifact = Artifact::read(&version_folder(&self.settings.folder, name, version))?;
        let golden = GoldenCases::read(&artifact)?;
        let serving = self.shared.stable(name);
        if let Some(serving) = &serving {
            let (own, expected) = (artifact.manifest().task(), serving.manifest().task());
            if own != expected {
                let version = serving.manifest().version;
                return Err(ValidationError::OtherTask { version, found: own, expected });
            }
        }
        let model = Arc::new(Model::new(artifact, &self.runtime, self.settings.workers)?);
        golden.check(&model, Worker(0))?;
        if let Some(serving) = serving {
            golden.compare_time(&model, &serving, &self.runtime, self.settings.max_slowdown)?;
        }
        Ok((model, golden))
    }

    /// Frees the versions that nobody uses any more, on this thread.
    fn unload_unused(&self) {
        if !self.shared.catalogue().is_any_leaving() {
            return;
        }
        for model in self.shared.change(super::catalogue::Catalogue::take_unused) {
            let digest = model.digest();
            drop(model);
            self.engine.forget(digest);
        }
    }
}
