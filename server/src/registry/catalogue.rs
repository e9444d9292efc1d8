use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    error::ScanError,
    folder::FoundVersions,
    policy::Policies,
    serving::ServingSnapshot,
    settings::Defaults,
    versions::{VersionReport, Versions},
};
use crate::{
    metrics::Metrics,
    model::{Model, ModelState},
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
            let has_versions = versions
                .as_ref()
                .is_some_and(|versions| !versions.is_empty());
            if has_versions && !self.models.contains_key(name) {
                self.models
                    .insert(name.clone(), self.without_versions(name));
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

    /// Returns a model of which no version is known yet.
    fn without_versions(&self, name: &str) -> Versions<Arc<Model>> {
        let mut versions = Versions::new(name.to_owned(), self.retain);
        versions.set_policy(self.policies.get(name));
        versions
    }

    /// Describes the policies that cannot be followed.
    pub(super) fn unmet_policies(&self) -> Vec<String> {
        let unknown = |name: &&String| !self.models.contains_key(*name);
        let unknown = self.policies.iter().map(|(name, _)| name).filter(unknown);
        let unknown = unknown.map(|name| format!("policy.json: no model is named `{name}`"));
        unknown
            .chain(self.models.values().filter_map(Versions::unmet))
            .collect()
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

    pub(super) fn is_any_draining(&self) -> bool {
        self.models.values().any(Versions::is_draining)
    }

    /// Returns whether [`Self::take_unused`] would take any model.
    pub(super) fn is_any_unused(&self) -> bool {
        self.models
            .values()
            .any(|versions| versions.has_unused(is_unused))
    }

    /// Takes the models that no request can reach and that only this catalogue still holds.
    pub(super) fn take_unused(&mut self) -> Vec<Arc<Model>> {
        self.models
            .values_mut()
            .flat_map(|versions| versions.take_unused(is_unused))
            .collect()
    }

    pub(super) fn serving(&self) -> ServingSnapshot {
        let served =
            |(name, versions): (&String, &Versions<_>)| Some((name.clone(), versions.served()?));
        ServingSnapshot {
            models: self.models.iter().filter_map(served).collect(),
            defaults: self.defaults.clone(),
        }
    }

    /// Reports every version of every model, by name, then version.
    pub(super) fn reports(
        &self,
    ) -> impl Iterator<Item = (&Versions<Arc<Model>>, VersionReport<Arc<Model>>)> {
        self.models
            .values()
            .flat_map(|versions| versions.reports().map(move |report| (versions, report)))
    }

    /// Sets the metrics of the states of all versions.
    pub(super) fn update_metrics(&mut self, metrics: &Metrics) {
        for name in self.removed.drain(..) {
            metrics.model(&name).versions.set_versions(&[], None, None);
        }
        for (name, versions) in &self.models {
            let states: Vec<ModelState> = versions.reports().map(|report| report.state).collect();
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
fn is_unused(model: &Arc<Model>) -> bool {
    // Only a holder can make another reference, and this catalogue, the only one, is locked.
    Arc::strong_count(model) == 1
}
