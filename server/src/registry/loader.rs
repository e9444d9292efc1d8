//! The thread that looks for versions, loads and checks them, and frees those that nobody needs.

use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;
use futures::executor::block_on;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{
    LookError, RegistrySettings, Shared,
    catalogue::Catalogue,
    folder::{look, version_folder},
    policy::Policies,
    validation::{Bench, GoldenCases, ValidationError},
};
use crate::{
    compute::yield_to_others,
    engine::Engine,
    model::{Artifact, Model, Rejection},
    runtime::Runtime,
};

pub(super) struct Loader {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: RegistrySettings,
    pub(super) runtime: Runtime,
    pub(super) engine: Arc<Engine>,
    pub(super) woken: Receiver<()>,
    /// One a worker.
    pub(super) benches: Vec<Bench>,
    /// Wakes this thread when a file of the model folder changes, where the disk tells.
    pub(super) watched: Option<WatchedFolder>,
    /// What was wrong with the folder at the last look.
    pub(super) problems: Vec<String>,
}

/// A folder of which the disk tells changes.
pub(super) struct WatchedFolder {
    /// Its device and inode: another one may come in its place.
    identity: (u64, u64),
    /// Tells until it is dropped.
    _watcher: RecommendedWatcher,
}

/// Older versions that are looked at for that where nothing serves yet.
const JUDGED_VERSIONS: usize = 4;

/// Stops what waits for the loader.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(
                "the thread that loads models failed: what serves goes on, and nothing is loaded any more"
            );
        }
        self.0.stop();
    }
}

/// How long files must not have changed before they are read: a folder is copied file by file.
const QUIET: Duration = Duration::from_millis(50);

/// How long is waited for that at most.
const MAX_QUIET: Duration = Duration::from_secs(1);

/// How often to see whether the last request of a version is done.
const UNLOAD_INTERVAL: Duration = Duration::from_millis(100);

impl Loader {
    /// Goes on until the registry stops.
    pub(super) fn spawn(mut self) -> std::io::Result<()> {
        thread::Builder::new().name("model-loader".to_owned()).spawn(move || {
            // However it ends: nobody shall wait for a thread that is gone.
            let _ended = StopOnDrop(Arc::clone(&self.shared));
            // From now on there are calls.
            yield_to_others();
            self.benches.iter().for_each(Bench::yield_to_others);
            self.run();
        })?;
        Ok(())
    }

    fn run(&mut self) {
        let mut looked = Instant::now();
        while !self.shared.is_stopping() {
            let due = self.settings.poll.saturating_sub(looked.elapsed());
            let leaving = self.shared.catalogue().is_any_leaving();
            match self.woken.recv_timeout(if leaving { due.min(UNLOAD_INTERVAL) } else { due }) {
                Err(_) if leaving && !due.is_zero() => self.unload_unused(),
                woken => {
                    if woken.is_ok() {
                        self.wait_for_quiet();
                    }
                    self.look();
                    looked = Instant::now();
                }
            }
        }
    }

    /// Watches the model folder, unless the one in its place is watched already.
    fn watch(&mut self) -> notify::Result<()> {
        let before = self.watched.take();
        let folder = &self.settings.folder;
        let metadata = fs::metadata(folder)?;
        let identity = (metadata.dev(), metadata.ino());
        self.watched = before.filter(|before| before.identity == identity);
        if self.watched.is_some() {
            return Ok(());
        }
        let wake = self.shared.wake.clone();
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            if !event.is_ok_and(|event| event.kind.is_access()) {
                // It is awake, or will be.
                let _ = wake.try_send(());
            }
        })?;
        watcher.watch(folder, RecursiveMode::Recursive)?;
        self.watched = Some(WatchedFolder { identity, _watcher: watcher });
        Ok(())
    }

    fn wait_for_quiet(&self) {
        let started = Instant::now();
        while started.elapsed() < MAX_QUIET && self.woken.recv_timeout(QUIET).is_ok() {}
    }

    /// Looks at the model folder, and does everything that there is to do.
    pub(super) fn look(&mut self) {
        let waiting = std::mem::take(&mut self.shared.catalogue().waiting);
        let looked = self.read_folder();
        if !matches!(looked, Err(LookError::Folder { .. })) {
            while let Some((name, version)) = self.next_to_load() {
                self.load(&name, version);
            }
        }
        self.unload_unused();
        if self.shared.is_stopping() {
            // Not everything was done; dropping those who wait tells them.
            return;
        }
        for waiter in waiting {
            // An error means that it waits no more.
            let _ = waiter.send(looked.clone());
        }
    }

    /// Takes note of what is on disk, and says what is wrong there, once.
    fn read_folder(&mut self) -> Result<(), LookError> {
        // Before it is read, so that no change falls between the two.
        let watched = self.watch();
        let folder = &self.settings.folder;
        // The folder first: where it is gone, so is the file of the policies, which says nothing then.
        let found = look(folder).map_err(|error| LookError::Folder {
            path: folder.display().to_string(),
            detail: error.to_string(),
        });
        let read = found.and_then(|found| {
            let policies = self.read_policies();
            self.shared.change(|catalogue| catalogue.found(found.models));
            policies.map(|()| found.problems)
        });
        let problems = match &read {
            Ok(problems) => {
                let poll = self.settings.poll;
                let unwatched = watched.err().map(|error| {
                    format!("changes of it are not told, so it is looked at every {poll:?}: {error}")
                });
                let unmet = self.shared.catalogue().unmet_policies();
                problems.iter().cloned().chain(unwatched).chain(unmet).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        for problem in problems.iter().filter(|problem| !self.problems.contains(problem)) {
            tracing::warn!("model folder: {problem}");
        }
        self.problems = problems;
        read.map(drop)
    }

    fn read_policies(&self) -> Result<(), LookError> {
        let _turn = self.shared.policy_turn();
        let policies = Policies::read(&self.settings.folder)?;
        if self.shared.catalogue().policies() != &policies {
            self.shared.change(|catalogue| catalogue.set_policies(policies));
        }
        Ok(())
    }

    fn next_to_load(&self) -> Option<(String, u64)> {
        if self.shared.is_stopping() {
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
            Err(Rejection { reason: "SERVER_FAILED", message, transient: false })
        });
        let (metrics, took) = (&self.shared.metrics, started.elapsed());
        metrics.loading.attempted(&metrics.model(name).versions, prepared.as_ref().err(), took);
        match prepared {
            Ok(model) => self.shared.with_model(name, |versions| versions.loaded(version, model)),
            Err(rejection) => self.shared.with_model(name, |versions| versions.rejected(version, rejection)),
        }
    }

    /// Reads, checks and warms up a version.
    fn prepare(&self, name: &str, version: u64) -> Result<Arc<Model>, Rejection> {
        let (model, golden) = self.validate(name, version)?;
        self.shared.with_model(name, |versions| versions.warming(version));
        self.benches[1..].iter().try_for_each(|bench| golden.check(&model, bench))?;
        if self.shared.catalogue().get(name).is_some_and(|versions| versions.would_serve(version)) {
            self.recompute(&model);
        }
        Ok(model)
    }

    /// Checks a version beside the stable one. Where nothing is stable yet, beside the newest of the older versions that
    /// would have served one after the other, so that a restart judges as the server did before it.
    fn validate(&self, name: &str, version: u64) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let beside = self.shared.stable(name).or_else(|| {
            let older = self.shared.catalogue().get(name).map(|versions| versions.older(version))?;
            older.into_iter().take(JUDGED_VERSIONS).rev().fold(None, |before, older| {
                let judged = self.judge(name, older, 1, before.as_ref());
                judged.ok().map(|(model, _)| model).or(before)
            })
        });
        self.judge(name, version, self.settings.workers, beside.as_ref())
    }

    /// Reads and checks a version, with sessions for so many workers. It ranks what another one does, and takes not much
    /// longer if that is older.
    fn judge(
        &self,
        name: &str,
        version: u64,
        workers: usize,
        beside: Option<&Arc<Model>>,
    ) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let artifact = Artifact::read(&version_folder(&self.settings.folder, name, version))?;
        let golden = GoldenCases::read(&artifact)?;
        if let Some(other) = beside {
            let (found, expected) = (artifact.manifest().task(), other.manifest().task());
            if found != expected {
                let version = other.manifest().version;
                return Err(ValidationError::OtherTask { version, found, expected });
            }
        }
        let failed_runs = self.shared.metrics.model(name).failed_runs.clone();
        let model = Arc::new(Model::new(artifact, &self.runtime, workers)?.counting(failed_runs));
        golden.check(&model, &self.benches[0])?;
        let older = beside.filter(|other| other.manifest().version < version);
        // Whoever pinned it knows how long it takes.
        if let Some(older) = older.filter(|_| !self.is_pinned(name, version)) {
            // With a session of its own, so that nobody who asks it waits.
            if let Ok(older) = Model::new(older.artifact().clone(), &self.runtime, 1) {
                let limit = self.settings.max_slowdown;
                golden.compare_time(&model, &Arc::new(older), &self.benches[0], limit)?;
            }
        }
        Ok((model, golden))
    }

    fn is_pinned(&self, name: &str, version: u64) -> bool {
        self.shared.catalogue().get(name).is_some_and(|versions| versions.policy().pinned == Some(version))
    }

    /// Evaluates what the version before was asked for last, where that is to be.
    fn recompute(&self, model: &Arc<Model>) {
        let (started, manifest) = (Instant::now(), model.manifest());
        let recomputed = block_on(self.engine.recompute(model, Arc::clone(self.benches[0].pool())));
        let (name, version, took) = (&manifest.name, manifest.version, started.elapsed());
        match recomputed {
            Ok(graphs) => tracing::debug!(model = name, version, graphs, ?took, "embeddings recomputed"),
            Err(error) => tracing::warn!(model = name, version, %error, "embeddings were not recomputed"),
        }
    }

    /// Frees the versions that nobody uses any more, on this thread.
    fn unload_unused(&self) {
        if !self.shared.catalogue().is_any_unused() {
            return;
        }
        for model in self.shared.change(Catalogue::take_unused) {
            let digest = model.digest();
            drop(model);
            self.engine.forget(digest);
        }
    }
}
