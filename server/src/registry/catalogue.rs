use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{oneshot, watch};

use super::{
    error::ScanError,
    folder::FoundVersions,
    policy::Policies,
    serving::ServingModels,
    settings::{Defaults, RegistrySettings},
    versions::{ModelReport, Versions},
};
use crate::{
    metrics::Metrics,
    model::{Model, ModelState, Rejection},
};

/// Everything that is known about every model.
pub(super) struct Catalogue {
    models: BTreeMap<String, Versions<Arc<Model>>>,
    policies: Policies,
    defaults: Defaults,
    retain: usize,
    /// Calls that wait until the loader has scanned the folder and loaded every wanted version.
    pub(super) waiting: Vec<oneshot::Sender<Result<(), ScanError>>>,
    /// Names of removed models whose metrics are not updated yet.
    removed: Vec<String>,
}

impl Catalogue {
    pub(super) fn new(defaults: Defaults, retain: usize) -> Self {
        Self {
            models: BTreeMap::new(),
            policies: Policies::default(),
            defaults,
            retain,
            waiting: Vec::new(),
            removed: Vec::new(),
        }
    }

    /// Updates the models with what is on disk.
    pub(super) fn found(&mut self, mut found: BTreeMap<String, Option<FoundVersions>>) {
        for (name, versions) in &found {
            let is_empty = versions.as_ref().is_none_or(BTreeMap::is_empty);
            if !is_empty && !self.models.contains_key(name) {
                let mut versions = Versions::new(name.clone(), self.retain);
                versions.set_policy(self.policies.get(name));
                self.models.insert(name.clone(), versions);
            }
        }
        for (name, versions) in &mut self.models {
            match found.remove(name) {
                Some(Some(found)) => versions.found(&found),
                // A folder that could not be read says nothing about its versions.
                Some(None) => {}
                None => versions.found(&FoundVersions::new()),
            }
        }
        let removed = self
            .models
            .extract_if(.., |_, versions| versions.is_empty());
        self.removed.extend(removed.map(|(name, _)| name));
    }

    /// Describes the policies that cannot be followed.
    pub(super) fn unmet_policies(&self) -> Vec<String> {
        let names = self.policies.names();
        let unknown = names.filter(|name| !self.models.contains_key(*name));
        let unknown = unknown.map(|name| format!("policy.json: no model is named `{name}`"));
        let unmet = self.models.values().filter_map(Versions::unmet);
        unknown.chain(unmet).collect()
    }

    pub(super) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(super) fn set_policies(&mut self, policies: Policies) {
        self.policies = policies;
        for (name, versions) in &mut self.models {
            let policy = self.policies.get(name);
            if versions.policy() != policy {
                tracing::info!(model = name, pinned = policy.pinned, canary = ?policy.canary, "policy changed");
                versions.set_policy(policy);
            }
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<&Versions<Arc<Model>>> {
        self.models.get(name)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Versions<Arc<Model>>> {
        self.models.get_mut(name)
    }

    pub(super) fn retry_rejected(&mut self) {
        self.models.values_mut().for_each(Versions::retry_rejected);
    }

    /// Returns the model and version to load next.
    pub(super) fn next_to_load(&self) -> Option<(String, u64)> {
        self.models
            .iter()
            .find_map(|(name, versions)| Some((name.clone(), versions.next_to_load()?)))
    }

    /// Returns the models of versions that wait for their last request.
    pub(super) fn draining(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.models.values().flat_map(Versions::draining)
    }

    /// Takes the models that no request can reach and that only this catalogue still holds.
    pub(super) fn take_unused(&mut self) -> Vec<Arc<Model>> {
        let models = self.models.values_mut();
        models
            .flat_map(|versions| versions.take_unused(is_unused))
            .collect()
    }

    pub(super) fn serving(&self) -> ServingModels {
        let served =
            |(name, versions): (&String, &Versions<_>)| Some((name.clone(), versions.served()?));
        ServingModels {
            models: self.models.iter().filter_map(served).collect(),
            defaults: self.defaults.clone(),
        }
    }

    /// Reports every version of every model, by name, then version. `is_default` says whether calls that name no model reach the
    /// one of this name.
    pub(super) fn reports(&self, is_default: impl Fn(&Model, &str) -> bool) -> Vec<ModelReport> {
        let mut reports = Vec::new();
        for (name, versions) in &self.models {
            reports.extend(versions.reports(|model| is_default(model, name)));
        }
        reports
    }

    /// Sets the metrics of the states of all versions.
    fn update_metrics(&mut self, metrics: &Metrics) {
        for name in self.removed.drain(..) {
            metrics.model(&name).versions.set_versions(&[], None, None);
        }
        for (name, versions) in &self.models {
            let states: Vec<ModelState> = versions.states().collect();
            let served = versions.served();
            let canary = served.and_then(|served| Some(served.canary?.0));
            metrics
                .model(name)
                .versions
                .set_versions(&states, versions.stable(), canary);
        }
    }
}

/// Returns whether the catalogue is the only holder of a model.
pub(super) fn is_unused(model: &Arc<Model>) -> bool {
    // Only a holder can make another reference, and this catalogue, the only one, is locked.
    Arc::strong_count(model) == 1
}

/// State that requests, admin calls and the loader share.
pub(super) struct CatalogueState {
    pub(super) folder: PathBuf,
    catalogue: Mutex<Catalogue>,
    /// Held while the policies on disk are read or changed, until the catalogue follows them.
    policy_lock: Mutex<()>,
    pub(super) serving: ArcSwap<ServingModels>,
    pub(super) changes: watch::Sender<()>,
    pub(super) wake: Sender<()>,
    stopping: AtomicBool,
    pub(super) metrics: Arc<Metrics>,
}

/// Why a version is rejected whose run did not end.
const RUN_ABANDONED: &str = "a run did not end although it was stopped, and its thread was left behind; publish a version that \
                             answers this input, or reload to try again";

impl CatalogueState {
    pub(super) fn new(
        settings: &RegistrySettings,
        wake: Sender<()>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let catalogue = Catalogue::new(settings.defaults.clone(), settings.retain);
        Self {
            folder: settings.folder.clone(),
            serving: ArcSwap::from_pointee(catalogue.serving()),
            catalogue: Mutex::new(catalogue),
            policy_lock: Mutex::new(()),
            changes: watch::Sender::new(()),
            wake,
            stopping: AtomicBool::new(false),
            metrics,
        }
    }

    /// Locks the catalogue, which each of its operations leaves consistent.
    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock()
    }

    /// Changes the catalogue, and publishes the versions that serve after that. Requests see all of a change or none.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut catalogue = self.catalogue();
        let result = change(&mut catalogue);
        let changed = Instant::now();
        let serving = catalogue.serving();
        // The catalogue stays locked, so that snapshots are published in the order of the changes.
        if !self.serving.load().is_same(&serving) {
            self.serving.store(Arc::new(serving));
            self.metrics.loading.swap_seconds.record(changed.elapsed());
        }
        catalogue.update_metrics(&self.metrics);
        drop(catalogue);
        self.changes.send_replace(());
        result
    }

    pub(super) fn lock_policies(&self) -> MutexGuard<'_, ()> {
        self.policy_lock.lock()
    }

    pub(super) fn with_model<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Versions<Arc<Model>>) -> T,
    ) -> Option<T> {
        self.change(|catalogue| catalogue.get_mut(name).map(change))
    }

    /// Takes a version out of service because one of its runs did not end. The version before takes over.
    pub(super) fn abandoned(&self, name: &str, version: u64) {
        self.metrics.model(name).work.abandoned_runs.increment(1);
        let rejection = Rejection::new("RUN_ABANDONED", RUN_ABANDONED);
        // The model is dropped after the catalogue is unlocked.
        drop(self.change(|catalogue| catalogue.get_mut(name)?.abandoned(version, rejection)));
        self.wake();
    }

    pub(super) fn stable(&self, name: &str) -> Option<Arc<Model>> {
        let serving = self.serving.load();
        let served = serving.models.get(name)?;
        Some(Arc::clone(&served.stable.1))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        // The mark is set under the lock: a call either sees it, or is in the list that is cleared.
        let mut catalogue = self.catalogue();
        self.stopping.store(true, Ordering::Release);
        // Dropping the senders fails the calls that wait.
        catalogue.waiting.clear();
        drop(catalogue);
        self.changes.send_replace(());
        self.wake();
    }

    /// Makes the loader scan the model folder at once.
    pub(super) fn wake(&self) {
        // If the channel is full, the loader is about to scan.
        let _ = self.wake.try_send(());
    }
}

#[cfg(test)]
mod tests {
    use hlorank_graph::Digest;

    use super::*;

    #[test]
    fn a_model_whose_folder_cannot_be_read_stays_until_it_is_gone() {
        let mut catalogue = Catalogue::new(Defaults::default(), 1);
        let versions = FoundVersions::from([(1, Some(Digest([0; 32])))]);
        for found in [Some(versions), None] {
            catalogue.found(BTreeMap::from([("m".to_owned(), found)]));
            assert!(catalogue.models.contains_key("m"));
        }
        catalogue.found(BTreeMap::new());
        assert!(!catalogue.models.contains_key("m"));
    }
}
