//! The versions of one model: the state of each, and the decision which of them serve.
//!
//! A version is discovered, validated, warmed and loaded; from each of the last three it may be rejected. A loaded version serves
//! as the stable one or the canary, is retained, or drains until its last request has ended, and is then unloaded. Scans, loading
//! threads and operators report here what happened; every report ends with `settle`, which decides anew (`choice`) and logs the
//! states that changed. Nothing here reads files or frees models, so that each transition is a test without either.

use std::{collections::BTreeMap, mem::replace, sync::Arc, time::SystemTime};

use self::version::{Stage, Version};
use super::{folder::FoundVersions, policy::Policy};
use crate::model::{Model, ModelState, Rejection};

mod choice;
mod version;

/// The versions of one model. `M` is a loaded version.
#[derive(Debug)]
pub(super) struct Versions<M> {
    name: String,
    known: BTreeMap<u64, Version<M>>,
    policy: Policy,
    /// Number of versions that stay loaded beside those that serve.
    retain: usize,
    /// The version that answers requests by default; always loaded.
    stable: Option<u64>,
    /// The version that was stable before.
    previous: Option<u64>,
    /// The number of the last change that an operator requested. It may have to wait for a version to be loaded, and supersedes
    /// those before it.
    change: u64,
    /// The version that the last change needs.
    needed: Option<u64>,
    /// Number of attempts to load a version.
    attempts: u64,
    /// Number of scans of the folder.
    scans: u64,
}

/// The versions of one model that answer requests.
#[derive(Clone, Debug)]
pub(super) struct ServedVersions<M> {
    pub(super) stable: (u64, M),
    /// The canary, and the percentage of graphs that it serves.
    pub(super) canary: Option<(u64, M, u8)>,
    /// Every version that a request may name.
    pub(super) loaded: BTreeMap<u64, M>,
}

impl<M> Versions<M> {
    /// Returns a model without versions. `retain` versions stay loaded beside those that serve.
    pub(super) fn new(name: String, retain: usize) -> Self {
        Self {
            name,
            known: BTreeMap::new(),
            policy: Policy::default(),
            retain,
            stable: None,
            previous: None,
            change: 0,
            needed: None,
            attempts: 0,
            scans: 0,
        }
    }

    /// Updates the versions with what is on disk. A rejected or unloaded version whose files changed is discovered
    /// again; a loaded version stays as it is. A version whose rejection may pass is retried.
    pub(super) fn found(&mut self, found: &FoundVersions) {
        self.scans += 1;
        for (&version, &fingerprint) in found {
            // What is known of a version stays if its folder cannot be read.
            let Some(fingerprint) = fingerprint else {
                continue;
            };
            match self.known.get_mut(&version) {
                None => {
                    let new = Version::new(fingerprint, self.scans);
                    self.known.insert(version, new);
                    self.log(version, ModelState::Discovered);
                }
                Some(known) if known.fingerprint != fingerprint => {
                    // The fingerprint is kept also of a loaded version, so that one change is one
                    // warning.
                    known.fingerprint = fingerprint;
                    if known.model().is_none() {
                        known.stage = Stage::Discovered;
                    } else {
                        tracing::warn!(
                            model = self.name,
                            version,
                            "the files of a loaded version changed; it is not loaded again: publish a new version instead"
                        );
                    }
                }
                Some(_) => {}
            }
        }
        for (version, known) in &mut self.known {
            let on_disk = found.contains_key(version);
            if known.on_disk && !on_disk && known.model().is_some() {
                tracing::warn!(
                    model = self.name,
                    version,
                    "the folder of a loaded version was removed; the version answers until another is published"
                );
            }
            known.on_disk = on_disk;
            known.gone_since = if on_disk {
                None
            } else {
                known.gone_since.or(Some(self.scans))
            };
            known.retry |=
                matches!(&known.stage, Stage::Rejected(rejection) if rejection.transient);
        }
        self.forget_removed();
        self.settle();
    }

    /// Forgets versions that are neither on disk nor loaded.
    fn forget_removed(&mut self) {
        self.known
            .retain(|_, known| known.on_disk || known.model().is_some());
    }

    /// Retries rejected versions when they are wanted.
    pub(super) fn retry_rejected(&mut self) {
        self.known.values_mut().for_each(Version::retry);
        self.settle();
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn stable(&self) -> Option<u64> {
        self.stable
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.settle();
    }

    fn canary(&self) -> Option<u64> {
        self.policy.canary.map(|split| split.version)
    }

    /// Begins a change, and returns its number. The version that it needs is loaded whatever the policy says. The
    /// change supersedes earlier ones.
    pub(super) fn begin_change(&mut self, needed: Option<u64>) -> u64 {
        self.change += 1;
        self.needed = needed;
        // An operator who asks for a rejected version gets another attempt, perhaps after a repair.
        if let Some(known) = needed.and_then(|version| self.known.get_mut(&version)) {
            known.retry();
        }
        self.settle();
        self.change
    }

    /// Returns whether no other change began since.
    pub(super) fn is_last_change(&self, number: u64) -> bool {
        self.change == number
    }

    /// Ends a change, whether or not it was made. The version that it needed is no longer wanted.
    pub(super) fn end_change(&mut self, number: u64) {
        if self.is_last_change(number) {
            self.needed = None;
            self.settle();
        }
    }

    /// Returns the version to load next.
    pub(super) fn next_to_load(&self) -> Option<u64> {
        let mut wanted = self.wanted().into_iter();
        wanted.find(|&version| self.is(version, Version::is_loadable))
    }

    /// Begins an attempt to load a version, and returns its number.
    pub(super) fn validating(&mut self, version: u64) -> u64 {
        // The number tells this attempt from a later one, which begins if the files change
        // meanwhile.
        self.attempts += 1;
        if let Some(known) = self.known.get_mut(&version) {
            known.attempt = self.attempts;
        }
        self.set_stage(version, Stage::Validating);
        self.attempts
    }

    /// Returns whether an attempt to load a version is still wanted: the version was neither removed nor changed since.
    pub(super) fn is_current(&self, version: u64, attempt: u64) -> bool {
        self.is(version, |known| {
            known.is_loading() && known.attempt == attempt
        })
    }

    /// Returns whether a version is being loaded, or will be if it is wanted.
    pub(super) fn is_pending(&self, version: u64) -> bool {
        self.is(version, |known| known.is_loading() || known.is_loadable())
    }

    pub(super) fn warming(&mut self, version: u64) {
        self.set_stage(version, Stage::Warming);
    }

    pub(super) fn loaded(&mut self, version: u64, model: M) {
        self.set_stage(version, Stage::Loaded(model));
    }

    pub(super) fn rejected(&mut self, version: u64, rejection: Rejection) {
        if let Some(known) = self.known.get_mut(&version) {
            known.retry = false;
        }
        self.set_stage(version, Stage::Rejected(rejection));
    }

    /// Takes a loaded version out of service, because one of its runs was abandoned. It stays rejected, whatever the policy
    /// says, until its files change or an operator asks for it. Returns its model.
    pub(super) fn abandoned(&mut self, version: u64, rejection: Rejection) -> Option<M> {
        self.known.get(&version)?.model()?;
        match self.set_stage(version, Stage::Rejected(rejection))? {
            Stage::Loaded(model) | Stage::Draining(model) => Some(model),
            _ => None,
        }
    }

    pub(super) fn is_loaded(&self, version: u64) -> bool {
        self.loaded_model(version).is_some()
    }

    /// Returns the model of a version that is loaded and not draining.
    fn loaded_model(&self, version: u64) -> Option<&M> {
        match &self.known.get(&version)?.stage {
            Stage::Loaded(model) => Some(model),
            _ => None,
        }
    }

    /// Returns the models of versions that wait for their last request.
    pub(super) fn draining(&self) -> impl Iterator<Item = &M> {
        self.known.values().filter_map(|known| match &known.stage {
            Stage::Draining(model) => Some(model),
            _ => None,
        })
    }

    /// Takes the models of draining versions that are unused.
    pub(super) fn take_unused(&mut self, unused: impl Fn(&M) -> bool) -> Vec<M> {
        let mut taken = Vec::new();
        for known in self.known.values_mut() {
            if matches!(&known.stage, Stage::Draining(model) if unused(model))
                && let Stage::Draining(model) = replace(&mut known.stage, Stage::Unloaded)
            {
                taken.push(model);
            }
        }
        self.report_changes();
        self.forget_removed();
        taken
    }

    /// Describes a version that the policy names and that cannot serve.
    pub(super) fn unmet(&self) -> Option<String> {
        let mut named = self.policy.pinned.into_iter().chain(self.canary());
        let version = named.find(|&version| !self.is_usable(version))?;
        Some(format!(
            "policy.json: version {version} of {} does not exist or was rejected",
            self.name
        ))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The states of all versions, in ascending order.
    pub(super) fn states(&self) -> impl Iterator<Item = ModelState> {
        let known = self.known.iter();
        known.map(|(&version, known)| self.state(version, &known.stage))
    }

    fn state(&self, version: u64, stage: &Stage<M>) -> ModelState {
        match stage {
            Stage::Discovered => ModelState::Discovered,
            Stage::Validating => ModelState::Validating,
            Stage::Warming => ModelState::Warming,
            Stage::Loaded(_) if [self.stable, self.canary()].contains(&Some(version)) => {
                ModelState::Serving
            }
            Stage::Loaded(_) | Stage::Draining(_) => ModelState::Retained,
            Stage::Rejected(_) => ModelState::Rejected,
            Stage::Unloaded => ModelState::Unloaded,
        }
    }

    /// Sets the stage of a version, and returns its previous stage.
    fn set_stage(&mut self, version: u64, stage: Stage<M>) -> Option<Stage<M>> {
        let known = self.known.get_mut(&version)?;
        let before = replace(&mut known.stage, stage);
        self.settle();
        Some(before)
    }

    fn settle(&mut self) {
        self.choose();
        self.report_changes();
    }

    /// Logs the versions whose state has changed.
    fn report_changes(&mut self) {
        let versions = self.known.keys().copied();
        // The states are collected first, because the loop changes the versions.
        let states: Vec<_> = versions.zip(self.states()).collect();
        for (version, state) in states {
            let known = self.known.get_mut(&version);
            if known.is_some_and(|known| known.report(state)) {
                self.log(version, state);
            }
        }
    }

    fn log(&self, version: u64, state: ModelState) {
        let model = &self.name;
        let reached = self.known.get(&version).map(|known| &known.stage);
        if let Some(Stage::Rejected(Rejection {
            reason, message, ..
        })) = reached
        {
            tracing::error!(model, version, reason, "model rejected: {message}");
        } else {
            tracing::info!(model, version, "model {state}");
        }
    }
}

impl<M: Clone> Versions<M> {
    /// Returns the versions that answer requests, or `None` if no version serves.
    pub(super) fn served(&self) -> Option<ServedVersions<M>> {
        let model = |version| Some((version, self.loaded_model(version)?.clone()));
        let canary = self.policy.canary.and_then(|split| {
            let (version, model) = model(split.version)?;
            Some((version, model, split.percent))
        });
        Some(ServedVersions {
            // Without a stable version, a model does not serve at all, even if it has a canary.
            stable: model(self.stable?)?,
            canary,
            loaded: self.known.keys().copied().filter_map(model).collect(),
        })
    }

    /// Reports every version, in ascending order. `is_default` says whether requests that name no model reach one.
    pub(super) fn reports(
        &self,
        is_default: impl Fn(&M) -> bool,
    ) -> impl Iterator<Item = ModelReport<M>> {
        self.known.iter().map(move |(&version, known)| {
            let state = self.state(version, &known.stage);
            // The policy may name a canary that is not loaded, which gets no graphs.
            let canary = self
                .policy
                .canary
                .filter(|split| split.version == version && state == ModelState::Serving);
            ModelReport {
                name: self.name.clone(),
                version,
                state,
                since: known.since,
                rejection: match &known.stage {
                    Stage::Rejected(rejection) => Some(rejection.clone()),
                    _ => None,
                },
                waits_for: (state == ModelState::Discovered).then(|| self.waits_for(version)),
                model: known.model().cloned(),
                stable: self.stable == Some(version),
                canary_percent: canary.map(|split| split.percent),
                pinned: self.policy.pinned == Some(version),
                default_for_task: known.model().is_some_and(&is_default),
                folder_gone: !known.on_disk,
            }
        })
    }
}

#[cfg(test)]
mod tests;

/// What is known about one version of one model. `M` is a loaded version.
#[derive(Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own, and they combine freely"
)]
pub struct ModelReport<M = Arc<Model>> {
    /// Name of the model.
    pub name: String,
    /// Version number, from 1.
    pub version: u64,
    /// Life-cycle state.
    pub state: ModelState,
    /// When the version entered that state.
    pub since: SystemTime,
    /// Why the version was rejected, if it was.
    pub rejection: Option<Rejection>,
    /// What the version waits for, if it is discovered.
    pub waits_for: Option<String>,
    /// The model, if it is loaded.
    pub model: Option<M>,
    /// Whether requests that name no version reach it, except those that the canary serves.
    pub stable: bool,
    /// The percentage of graphs that it serves as the canary.
    pub canary_percent: Option<u8>,
    /// Whether the policy pins it.
    pub pinned: bool,
    /// Whether requests that name no model reach this model.
    pub default_for_task: bool,
    /// Whether its folder was removed.
    pub folder_gone: bool,
}
