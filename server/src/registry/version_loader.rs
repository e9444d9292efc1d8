use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Instant,
};

use futures::executor::block_on;
use metrics::Counter;

use super::{
    folder::version_folder,
    settings::RegistrySettings,
    shared::Shared,
    validation::{GoldenCases, ValidationEngine, ValidationError},
};
use crate::{
    engine::Engine,
    model::{Artifact, Model, Rejection},
    runtime::Runtime,
};

/// Loads, checks and warms up one version at a time.
pub(super) struct VersionLoader {
    pub(super) shared: Arc<Shared>,
    pub(super) settings: RegistrySettings,
    pub(super) runtime: Runtime,
    pub(super) engine: Arc<Engine>,
    /// One per worker.
    pub(super) engines: Vec<ValidationEngine>,
}

/// Maximum number of older versions that are validated to find the reference of a version if none is stable.
const MAX_REFERENCES: usize = 4;

impl VersionLoader {
    /// Gives the threads that validate versions a low priority.
    pub(super) fn yield_to_others(&self) {
        self.engines.iter().for_each(ValidationEngine::yield_to_others);
    }

    pub(super) fn load(&self, name: &str, version: u64) {
        let started = Instant::now();
        self.shared.with_model(name, |versions| versions.validating(version));
        // A broken artifact may panic in the libraries that read it.
        let prepared = catch_unwind(AssertUnwindSafe(|| self.prepare(name, version)));
        let prepared = prepared.unwrap_or_else(|_| {
            let message = "the server failed while it checked the artifact; its log says where".to_owned();
            Err(Rejection { reason: "SERVER_FAILED", message, transient: false })
        });
        let (metrics, duration) = (&self.shared.metrics, started.elapsed());
        metrics.loading.attempted(&metrics.model(name).versions, prepared.as_ref().err(), duration);
        match prepared {
            Ok(model) => self.shared.with_model(name, |versions| versions.loaded(version, model)),
            Err(rejection) => self.shared.with_model(name, |versions| versions.rejected(version, rejection)),
        }
    }

    /// Reads, checks and warms up a version.
    fn prepare(&self, name: &str, version: u64) -> Result<Arc<Model>, Rejection> {
        let (model, golden) = self.validate(name, version)?;
        self.shared.with_model(name, |versions| versions.warming(version));
        self.engines[1..].iter().try_for_each(|engine| golden.check(&model, engine))?;
        if self.shared.catalogue().get(name).is_some_and(|versions| versions.would_serve(version)) {
            self.recompute(&model);
        }
        Ok(model)
    }

    /// Checks a version against the stable one. If none is stable yet, the reference is the newest of the older
    /// versions that would have served in turn, so that a restart gives the same verdict as before it.
    fn validate(&self, name: &str, version: u64) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let reference = self.shared.stable(name).or_else(|| {
            let older = self.shared.catalogue().get(name).map(|versions| versions.older(version))?;
            older.into_iter().take(MAX_REFERENCES).rev().fold(None, |reference, older| {
                let checked = self.check(name, older, 1, reference.as_ref());
                checked.ok().map(|(model, _)| model).or(reference)
            })
        });
        self.check(name, version, self.settings.workers, reference.as_ref())
    }

    /// Reads and checks a version, with sessions for `workers` workers. It must rank the same task as `reference`, and
    /// must not take much longer if the reference is older.
    fn check(
        &self,
        name: &str,
        version: u64,
        workers: usize,
        reference: Option<&Arc<Model>>,
    ) -> Result<(Arc<Model>, GoldenCases), ValidationError> {
        let artifact = Artifact::read(&version_folder(&self.settings.folder, name, version))?;
        let golden = GoldenCases::read(&artifact)?;
        if let Some(other) = reference {
            let (found, expected) = (artifact.manifest().task(), other.manifest().task());
            if found != expected {
                let version = other.manifest().version;
                return Err(ValidationError::OtherTask { version, found, expected });
            }
        }
        let failed_runs = self.shared.metrics.model(name).failed_runs.clone();
        let model = Arc::new(Model::new(artifact, &self.runtime, workers, failed_runs)?);
        golden.check(&model, &self.engines[0])?;
        let older = reference.filter(|other| other.manifest().version < version);
        // An operator who pins a version accepts its time.
        if let Some(older) = older.filter(|_| !self.is_pinned(name, version)) {
            // The older version gets a session of its own, so that its requests do not wait.
            if let Ok(older) = Model::new(older.artifact().clone(), &self.runtime, 1, Counter::noop()) {
                let limit = self.settings.max_slowdown;
                golden.compare_time(&model, &Arc::new(older), &self.engines[0], limit)?;
            }
        }
        Ok((model, golden))
    }

    fn is_pinned(&self, name: &str, version: u64) -> bool {
        self.shared.catalogue().get(name).is_some_and(|versions| versions.policy().pinned == Some(version))
    }

    /// Evaluates the recent requests of the previous version, if the settings ask for that.
    fn recompute(&self, model: &Arc<Model>) {
        let (started, manifest) = (Instant::now(), model.manifest());
        let recomputed = block_on(self.engine.recompute(model, Arc::clone(self.engines[0].pool())));
        let (name, version, took) = (&manifest.name, manifest.version, started.elapsed());
        match recomputed {
            Ok(graphs) => tracing::debug!(model = name, version, graphs, ?took, "embeddings recomputed"),
            Err(error) => tracing::warn!(model = name, version, %error, "embeddings were not recomputed"),
        }
    }
}
