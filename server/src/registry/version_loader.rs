use std::{
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use tokio::runtime::Handle;
use tonic::Code;

use super::{
    catalogue::CatalogueState,
    folder::version_folder,
    golden::GoldenCases,
    settings::RegistrySettings,
    validation_engine::{LoadLimit, ValidationEngine},
};
use crate::{
    compute::Worker,
    engine::Engine,
    model::{Artifact, Model, Rejection, RunReports},
    runtime::Runtime,
    telemetry::{AuditedChange, audit},
};

/// Loads, checks and warms up versions.
pub(super) struct VersionLoader {
    pub(super) shared: Arc<CatalogueState>,
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
}

/// Maximum number of older versions that are validated to find the reference of a version if none is stable.
const MAX_REFERENCES: u32 = 4;

impl VersionLoader {
    /// Makes the engines that check the sessions of each worker.
    pub(super) fn engines(&self) -> io::Result<Vec<ValidationEngine>> {
        let workers = 0..self.settings.workers;
        let pool = self.engine.pool();
        workers
            .map(|worker| ValidationEngine::new(pool, Worker(worker)))
            .collect()
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
        let preparation = Preparation {
            loader: self,
            engines,
            limit: LoadLimit::new(self.timers.clone(), self.settings.max_load, is_wanted),
            name: &attempt.name,
        };
        // A panic rejects this version. The thread goes on with the next one.
        let prepared = catch_unwind(AssertUnwindSafe(|| preparation.run(attempt.version)));
        let prepared = prepared.unwrap_or_else(|_| {
            let message = "the server failed while it checked the artifact; its log says where";
            Err(Rejection::new("SERVER_FAILED", message))
        });
        // The metrics do not count an attempt whose result nobody wants any more.
        if !is_current(&self.shared, attempt) {
            return;
        }
        let metrics = &self.shared.metrics;
        metrics.loading.attempted(
            &metrics.model(&attempt.name).versions,
            prepared.as_ref().err(),
            started.elapsed(),
        );
        self.shared.with_model(&attempt.name, |versions| {
            // The lock was free since the check above, so a scan may have found other files.
            if versions.is_current(attempt.version, attempt.number) {
                let change = AuditedChange {
                    version: Some(attempt.version),
                    ..AuditedChange::of_model(&attempt.name)
                };
                let outcome = match &prepared {
                    Ok(_) => (Code::Ok, None),
                    Err(rejection) => (Code::FailedPrecondition, Some(rejection.reason)),
                };
                audit("Load", None, &change, outcome);
                match prepared {
                    Ok(model) => versions.loaded(attempt.version, model),
                    Err(rejection) => versions.rejected(attempt.version, rejection),
                }
            }
        });
    }
}

fn is_current(shared: &CatalogueState, attempt: &Attempt) -> bool {
    let catalogue = shared.catalogue();
    let versions = catalogue.get(&attempt.name);
    versions.is_some_and(|versions| versions.is_current(attempt.version, attempt.number))
}

impl Preparation<'_> {
    /// Reads, checks and warms up a version. It is checked against the stable one, or else against the one that would serve.
    fn run(&self, version: u64) -> Result<Arc<Model>, Rejection> {
        let shared = &self.loader.shared;
        let stable = shared.stable(self.name);
        let reference = stable.or_else(|| self.would_have_served(version));
        let workers = self.loader.settings.workers;
        let (model, golden) = self.check(version, workers, reference.as_ref(), &self.limit)?;
        shared.with_model(self.name, |versions| versions.warming(version));
        // The first engine has checked the sessions of its worker already.
        for engine in &self.engines[1..] {
            golden.check(&model, engine, &self.limit)?;
        }
        Ok(model)
    }

    /// Returns the newest of the older versions that would have served in turn, so that a restart gives the same verdict
    /// as before it.
    fn would_have_served(&self, version: u64) -> Option<Arc<Model>> {
        let shared = &self.loader.shared;
        let mut older = shared.catalogue().get(self.name)?.older(version);
        older.truncate(MAX_REFERENCES as usize);
        // The references take at most half of the time, so that one that hangs does not reject this
        // version.
        let part = || self.limit.part(2 * MAX_REFERENCES);
        // The fold goes from the oldest to the newest: each was published after those before it,
        // and checked against the one that served then.
        older.into_iter().rev().fold(None, |reference, older| {
            let checked = self.check(older, 1, reference.as_ref(), &part());
            checked.ok().map(|(model, _)| model).or(reference)
        })
    }

    /// Reads and checks a version, with sessions for `workers` workers. It must rank the same task as `reference`, and
    /// must not take much longer if the reference is older.
    fn check(
        &self,
        version: u64,
        workers: usize,
        reference: Option<&Arc<Model>>,
        limit: &LoadLimit,
    ) -> Result<(Arc<Model>, GoldenCases), Rejection> {
        let settings = &self.loader.settings;
        let engine = &self.engines[0];
        let folder = version_folder(&settings.folder, self.name, version);
        let keys = settings.keys.clone();
        let (artifact, golden) = engine.run(limit, move || {
            let artifact = Artifact::read(&folder, keys.as_ref())?;
            let golden = GoldenCases::read(&artifact)?;
            Ok::<_, Rejection>((artifact, golden))
        })??;
        // Calls that name the model send nothing else than what the reference ranks.
        let found = artifact.manifest.task;
        if let Some(reference) = reference.map(|reference| reference.manifest())
            && found != reference.task
        {
            let message = format!(
                "it ranks {found} configurations, but version {} ranks {} configurations; publish it under another name",
                reference.version, reference.task
            );
            return Err(Rejection::new("TASK_MISMATCH", message));
        }
        let reports = self.reports(version);
        let model = self.model(artifact, workers, reports, limit)?;
        golden.check(&model, engine, limit)?;
        // A reference that is newer says nothing, and an operator who pins a version accepts its time.
        let is_pinned = || {
            let catalogue = self.loader.shared.catalogue();
            let versions = catalogue.get(self.name);
            versions.is_some_and(|versions| versions.policy().pinned == Some(version))
        };
        let older = reference.filter(|reference| reference.manifest().version < version);
        if let Some(older) = older.filter(|_| !is_pinned()) {
            // The reference gets a session of its own, so that its requests do not wait. If it cannot
            // be loaded again, there is nothing to compare with.
            let older = self.model(older.artifact.clone(), 1, RunReports::none(), limit);
            if let Ok(older) = older {
                golden.check_time(&model, &older, settings.max_slowdown, engine, limit)?;
            }
        }
        Ok((model, golden))
    }

    fn model(
        &self,
        artifact: Artifact,
        workers: usize,
        reports: RunReports,
        limit: &LoadLimit,
    ) -> Result<Arc<Model>, Rejection> {
        let runtime = self.loader.runtime.clone();
        let make = move || Model::new(artifact, &runtime, workers, reports);
        Ok(Arc::new(self.engines[0].run(limit, make)??))
    }

    /// Returns where runs of a version are reported.
    fn reports(&self, version: u64) -> RunReports {
        let shared = &self.loader.shared;
        // The reports of a model that outlives the registry do not keep the registry.
        let weak = Arc::downgrade(shared);
        let name = self.name.to_owned();
        let on_abandoned = move || {
            if let Some(shared) = weak.upgrade() {
                shared.abandoned(&name, version);
            }
        };
        RunReports {
            failed: shared.metrics.model(self.name).work.failed_runs.clone(),
            on_abandoned: Arc::new(on_abandoned),
        }
    }
}
