use std::{collections::BTreeMap, sync::Arc};

use tokio::sync::oneshot;

use super::{
    Defaults, LookError,
    folder::FoundVersions,
    policy::Policies,
    serving::Serving,
    versions::{Report, Versions},
};
use crate::{
    metrics::Metrics,
    model::{Model, ModelState},
};

/// Everything that is known of every model; who changes it publishes what then serves.
pub(super) struct Catalogue {
    models: BTreeMap<String, Versions<Arc<Model>>>,
    policies: Policies,
    defaults: Defaults,
    retain: usize,
    /// Who waits for the loader to have looked and done everything there was to do.
    pub(super) waiting: Vec<oneshot::Sender<Result<(), LookError>>>,
    /// Names that are gone, and still shown.
    gone: Vec<String>,
}

impl Catalogue {
    pub(super) fn new(defaults: Defaults, retain: usize) -> Self {
        Self {
            models: BTreeMap::new(),
            policies: Policies::default(),
            defaults,
            retain,
            waiting: Vec::new(),
            gone: Vec::new(),
        }
    }

    /// Takes note of what is on disk.
    pub(super) fn found(&mut self, mut found: BTreeMap<String, Option<FoundVersions>>) {
        for (name, versions) in &found {
            let some = versions.as_ref().is_some_and(|versions| !versions.is_empty());
            if some && !self.models.contains_key(name) {
                let mut versions = Versions::new(name.clone(), self.retain);
                versions.set_policy(self.policies.get(name));
                self.models.insert(name.clone(), versions);
            }
        }
        for (name, versions) in &mut self.models {
            match found.remove(name) {
                Some(Some(found)) => versions.found(&found),
                // It could not be read.
                Some(None) => {}
                None => versions.found(&FoundVersions::new()),
            }
        }
        self.gone.extend(self.models.extract_if(.., |_, versions| versions.is_empty()).map(|(name, _)| name));
    }

    /// What policies ask for and cannot have, for people.
    pub(super) fn unmet_policies(&self) -> Vec<String> {
        let unknown = |name: &&String| !self.models.contains_key(*name);
        let unknown = self.policies.iter().map(|(name, _)| name).filter(unknown);
        let unknown = unknown.map(|name| format!("policy.json: there is no model `{name}`"));
        unknown.chain(self.models.values().filter_map(Versions::unmet)).collect()
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

    /// The model and version to load next.
    pub(super) fn next_to_load(&self) -> Option<(String, u64)> {
        self.models.iter().find_map(|(name, versions)| Some((name.clone(), versions.next_to_load()?)))
    }

    pub(super) fn is_any_leaving(&self) -> bool {
        self.models.values().any(Versions::is_leaving)
    }

    /// Whether [`Self::take_unused`] would take any.
    pub(super) fn is_any_unused(&self) -> bool {
        self.models.values().any(|versions| versions.has_unused(is_unused))
    }

    /// Takes the models that only this catalogue holds and that no request can reach.
    pub(super) fn take_unused(&mut self) -> Vec<Arc<Model>> {
        self.models.values_mut().flat_map(|versions| versions.take_unused(is_unused)).collect()
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
    pub(super) fn show(&mut self, metrics: &Metrics) {
        for name in self.gone.drain(..) {
            metrics.model(&name).versions.set_versions(&[], None, None);
        }
        for (name, versions) in &self.models {
            let states: Vec<ModelState> = versions.reports().map(|report| report.state).collect();
            let served = versions.served();
            let canary = served.and_then(|served| Some(served.canary?.0));
            metrics.model(name).versions.set_versions(&states, versions.stable(), canary);
        }
    }

    pub(super) fn defaults(&self) -> &Defaults {
        &self.defaults
    }
}

/// Whether nobody else holds a model.
fn is_unused(model: &Arc<Model>) -> bool {
    Arc::strong_count(model) == 1
}
