use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    error::ScanError, folder::FoundVersions, policy::Policies, report::ModelReport,
    serving::ServingModels, settings::Defaults, versions::Versions,
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

    /// Returns whether a version waits for its last request.
    pub(super) fn is_any_draining(&self) -> bool {
        self.draining().next().is_some()
    }

    /// Returns whether [`Self::take_unused`] would take any model.
    pub(super) fn is_any_unused(&self) -> bool {
        self.draining().any(is_unused)
    }

    fn draining(&self) -> impl Iterator<Item = &Arc<Model>> {
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
    pub(super) fn update_metrics(&mut self, metrics: &Metrics) {
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
fn is_unused(model: &Arc<Model>) -> bool {
    // Only a holder can make another reference, and this catalogue, the only one, is locked.
    Arc::strong_count(model) == 1
}
