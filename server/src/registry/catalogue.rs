use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    Defaults, ModelState, Policy,
    folder::Found,
    policy::Policies,
    serving::Serving,
    versions::{Report, Versions},
};
use crate::{metrics::Metrics, model::Model};

/// Everything that is known of every model; who changes it publishes what then serves.
pub(super) struct Catalogue {
    models: BTreeMap<String, Versions<Arc<Model>>>,
    policies: Policies,
    defaults: Defaults,
    retain: usize,
    /// Who waits for the loader to have looked and done everything there was to do.
    pub(super) waiting: Vec<oneshot::Sender<()>>,
}

impl Catalogue {
    pub(super) fn new(defaults: Defaults, retain: usize) -> Self {
        Self { models: BTreeMap::new(), policies: Policies::default(), defaults, retain, waiting: Vec::new() }
    }

    /// Takes note of what is on disk.
    pub(super) fn found(&mut self, mut found: Found) {
        for name in found.keys().filter(|name| !found[*name].is_empty()) {
            if !self.models.contains_key(name) {
                let mut versions = Versions::new(name.clone(), self.retain);
                versions.set_policy(self.policies.get(name));
                self.models.insert(name.clone(), versions);
            }
        }
        for (name, versions) in &mut self.models {
            versions.found(&found.remove(name).unwrap_or_default());
        }
        self.models.retain(|_, versions| !versions.is_empty());
    }

    pub(super) fn policies(&self) -> &Policies {
        &self.policies
    }

    pub(super) fn set_policies(&mut self, policies: Policies) {
        self.policies = policies;
        for (name, versions) in &mut self.models {
            let policy: Policy = self.policies.get(name);
            if versions.policy() != &policy {
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

    /// The model and version to load next.
    pub(super) fn next_to_load(&self) -> Option<(String, u64)> {
        self.models.iter().find_map(|(name, versions)| Some((name.clone(), versions.next_to_load()?)))
    }

    pub(super) fn is_any_leaving(&self) -> bool {
        self.models.values().any(Versions::is_leaving)
    }

    /// Takes the models that only this catalogue holds and that no request can reach.
    pub(super) fn take_unused(&mut self) -> Vec<Arc<Model>> {
        let unused = |model: &Arc<Model>| Arc::strong_count(model) == 1;
        self.models.values_mut().flat_map(|versions| versions.take_unused(unused)).collect()
    }

    pub(super) fn serving(&self) -> Serving {
        let served = |(name, versions): (&String, &Versions<_>)| Some((name.clone(), versions.served()?));
        Serving { models: self.models.iter().filter_map(served).collect(), defaults: self.defaults.clone() }
    }

    /// Every version of every model, by name, then version.
    pub(super) fn reports(&self) -> impl Iterator<Item = (&Versions<Arc<Model>>, Report<Arc<Model>>)> {
        self.models.values().flat_map(|versions| versions.reports().map(move |report| (versions, report)))
    }

    /// Shows the states of all versions.
    pub(super) fn show(&self, metrics: &Metrics) {
        for (name, versions) in &self.models {
            let states: Vec<ModelState> = versions.reports().map(|report| report.state).collect();
            let served = versions.served();
            let canary = served.and_then(|served| Some(served.canary?.0));
            metrics.model(name).versions.show(&states, versions.stable(), canary);
        }
    }

    pub(super) fn defaults(&self) -> &Defaults {
        &self.defaults
    }
}
