use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Weak},
    time::Instant,
};

use tokio::runtime::Handle;

use super::{
    folder::version_folder,
    settings::RegistrySettings,
    shared::Shared,
    validation::{GoldenCases, LoadLimit, ValidationEngine, ValidationError},
};
use crate::{
    compute::Worker,
    engine::Engine,
    model::{Artifact, Model, Rejection, RunReports},
    runtime::Runtime,
};

/// Loads, checks and warms up versions.
pub(super) struct VersionLoader {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: RegistrySettings,
    pub(super) runtime: Runtime,
    pub(super) engine: Arc<Engine>,
    pub(super) timers: Handle,
}

/// One attempt to load a version.
#[derive(Clone)]
pub(super) struct Attempt {
    name: String,
    version: u64,
    number: u64,
}

/// Prepares a version to serve.
struct Preparation<'a> {
    loader: &'a VersionLoader,
    /// One per worker.
    engines: &'a [ValidationEngine],
    limit: LoadLimit,
    name: &'a str,
    version: u64,
}

/// Maximum number of older versions that are validated to find the reference of a version if none is stable.
const MAX_REFERENCES: u32 = 4;

impl VersionLoader {
    /// Makes an engine that checks the sessions of a worker.
    pub(super) fn validation_engine(&self, worker: Worker) -> io::Result<ValidationEngine> {
        ValidationEngine::new(self.engine.pool(), worker)
    }

    /// Begins an attempt; `None` if there is no such model any more.
    pub(super) fn begin(&self, name: &str, version: u64) -> Option<Attempt> {
        let number = self
            .shared
            .with_model(name, |versions| versions.validating(version))?;
        Some(Attempt {
            name: name.to_owned(),
            version,
            number,
        })
    }

    /// Loads a version, or rejects it. The result is dropped if the version was removed or changed meanwhile.
    pub(super) fn load(&self, engines: &[ValidationEngine], attempt: &Attempt) {
        let started = Instant::now();
        let shared = Arc::clone(&self.shared);
        let own = attempt.clone();
        let is_wanted = move || !shared.is_stopping() && is_current(&shared, &own);
        let limit = LoadLimit::new(self.timers.clone(), self.settings.max_load, is_wanted);
        let Attempt { name, version, .. } = attempt;
        let preparation = Preparation {
            loader: self,
            engines,
            limit,
            name,
            version: *version,
        };
        let prepared = catch_unwind(AssertUnwindSafe(|| preparation.run()));
        let prepared = prepared.unwrap_or_else(|_| {
            let message =
                "the server failed while it checked the artifact; its log says where".to_owned();
            Err(Rejection {
                reason: "SERVER_FAILED",
                message,
                transient: false,
            })
        });
        self.finish(attempt, prepared, started);
    }

    fn finish(&self, attempt: &Attempt, prepared: Result<Arc<Model>, Rejection>, started: Instant) {
        let Attempt {
            name,
            version,
            number,
        } = attempt;
        if !is_current(&self.shared, attempt) {
            return;
        }
        let metrics = &self.shared.metrics;
        metrics.loading.attempted(
            &metrics.model(name).versions,
            prepared.as_ref().err(),
            started.elapsed(),
        );
        self.shared.with_model(name, |versions| {
            if versions.is_current(*version, *number) {
                match prepared {
                    Ok(model) => versions.loaded(*version, model),
                    Err(rejection) => versions.rejected(*version, rejection),
                }
            }
        });
    }
}

fn is_current(shared: &Shared, attempt: &Attempt) -> bool {
    let catalogue = shared.catalogue();
    let versions = catalogue.get(&attempt.name);
    versions.is_some_and(|versions| versions.is_current(attempt.version, attempt.number))
}

/// Returns where runs of a version are reported.
fn reports(shared: &Arc<Shared>, name: &str, version: u64) -> RunReports {
    // The reports of a model that outlives the registry do not keep the registry.
    let weak: Weak<Shared> = Arc::downgrade(shared);
    let owned = name.to_owned();
    let on_abandoned = move || {
        if let Some(shared) = weak.upgrade() {
            shared.abandoned(&owned, version);
        }
    };
    RunReports {
        failed: shared.metrics.model(name).failed_runs.clone(),
        on_abandoned: Arc::new(on_abandoned),
    }
}

impl Preparation<'_> {
    /// Reads, checks and warms up a version.
    fn run(&self) -> Result<Arc<Model>, Rejection> {
        let (model, golden) = self.validate()?;
        let shared = &self.loader.shared;
        shared.with_model(self.name, |versions| versions.warming(self.version));
        self.engines[1..]
            .iter()
            .try_for_each(|engine| golden.check(&model, engine, &self.limit))?;
        Ok(model)
    }

    /// Checks a version against the stable one. If none is stable yet, the reference is the newest of the older
    /// versions that would have served in turn, so that a restart gives the same verdict as before it.
    fn validate(&self) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let shared = &self.loader.shared;
        let reference = shared.stable(self.name).or_else(|| {
            let older = shared
                .catalogue()
                .get(self.name)
                .map(|versions| versions.older(self.version))?;
            older
                .into_iter()
                .take(MAX_REFERENCES as usize)
                .rev()
                .fold(None, |reference, older| {
                    let checked =
                        self.within_part_of_the_limit()
                            .check(older, 1, reference.as_ref());
                    checked.ok().map(|(model, _)| model).or(reference)
                })
        });
        self.check(
            self.version,
            self.loader.settings.workers,
            reference.as_ref(),
        )
    }

    /// The references take at most half of the time, so that one that hangs does not reject this version.
    fn within_part_of_the_limit(&self) -> Self {
        let Self {
            loader,
            engines,
            name,
            version,
            ..
        } = *self;
        Self {
            loader,
            engines,
            name,
            version,
            limit: self.limit.part(2 * MAX_REFERENCES),
        }
    }

    /// Reads and checks a version, with sessions for `workers` workers. It must rank the same task as `reference`, and
    /// must not take much longer if the reference is older.
    fn check(
        &self,
        version: u64,
        workers: usize,
        reference: Option<&Arc<Model>>,
    ) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let (artifact, golden) = self.read(version)?;
        if let Some(other) = reference {
            let found = artifact.manifest().task();
            let expected = other.manifest().task();
            if found != expected {
                let version = other.manifest().version;
                return Err(ValidationError::OtherTask {
                    version,
                    found,
                    expected,
                });
            }
        }
        let model = self.model(
            artifact,
            workers,
            reports(&self.loader.shared, self.name, version),
        )?;
        golden.check(&model, &self.engines[0], &self.limit)?;
        let older = reference.filter(|other| other.manifest().version < version);
        // An operator who pins a version accepts its time.
        if let Some(older) = older.filter(|_| !self.is_pinned(version)) {
            // The older version gets a session of its own, so that its requests do not wait.
            if let Ok(older) = self.model(older.artifact().clone(), 1, RunReports::none()) {
                let max_slowdown = self.loader.settings.max_slowdown;
                golden
                    .timed_cases(&older, &self.engines[0], &self.limit)
                    .compare(&model, &older, max_slowdown)?;
            }
        }
        Ok((model, golden))
    }

    fn read(&self, version: u64) -> Result<(Artifact, GoldenCases), ValidationError> {
        let folder = version_folder(&self.loader.settings.folder, self.name, version);
        let keys = self.loader.settings.keys.clone();
        self.engines[0].run(&self.limit, move || {
            let artifact = Artifact::read(&folder, keys.as_ref())?;
            let golden = GoldenCases::read(&artifact)?;
            Ok((artifact, golden))
        })?
    }

    fn model(
        &self,
        artifact: Artifact,
        workers: usize,
        reports: RunReports,
    ) -> Result<Arc<Model>, ValidationError> {
        let runtime = self.loader.runtime.clone();
        let make = move || Model::new(artifact, &runtime, workers, reports);
        Ok(Arc::new(self.engines[0].run(&self.limit, make)??))
    }

    fn is_pinned(&self, version: u64) -> bool {
        let catalogue = self.loader.shared.catalogue();
        catalogue
            .get(self.name)
            .is_some_and(|versions| versions.policy().pinned == Some(version))
    }
}
