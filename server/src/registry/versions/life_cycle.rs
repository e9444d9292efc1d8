use std::{collections::BTreeMap, time::SystemTime};

use hlorank_graph::Digest;

use super::{
    choice::Choice,
    known::KnownVersions,
    version::{Stage, Version},
};
use crate::{
    model::{ModelState, Rejection},
    registry::{folder::FoundVersions, policy::Policy},
};

/// The versions of one model. `M` is a loaded version.
#[derive(Debug)]
pub(in crate::registry) struct Versions<M> {
    name: String,
    known: KnownVersions<M>,
    choice: Choice,
    /// Number of attempts to load a version.
    attempts: u64,
    /// Number of scans of the folder.
    scans: u64,
}

/// What is reported about one version.
#[derive(Clone, Debug)]
pub(in crate::registry) struct VersionReport<M> {
    pub(in crate::registry) version: u64,
    pub(in crate::registry) state: ModelState,
    pub(in crate::registry) since: SystemTime,
    pub(in crate::registry) rejection: Option<Rejection>,
    /// The model of a loaded version.
    pub(in crate::registry) model: Option<M>,
    /// Whether its folder is there.
    pub(in crate::registry) on_disk: bool,
}

/// The versions of one model that answer requests.
#[derive(Clone, Debug)]
pub(in crate::registry) struct ServedVersions<M> {
    pub(in crate::registry) stable: (u64, M),
    /// The canary, and the percentage of graphs that it serves.
    pub(in crate::registry) canary: Option<(u64, M, u8)>,
    /// Every version that a request may name.
    pub(in crate::registry) loaded: BTreeMap<u64, M>,
}

impl<M: Clone> Versions<M> {
    /// Returns a model without versions. `retain` versions stay loaded beside those that serve.
    pub(in crate::registry) fn new(name: String, retain: usize) -> Self {
        Self {
            name,
            known: KnownVersions(BTreeMap::new()),
            choice: Choice::new(retain),
            attempts: 0,
            scans: 0,
        }
    }

    /// Updates the versions with what is on disk. A rejected or unloaded version whose files changed is discovered
    /// again; a loaded version stays as it is. A version whose rejection may pass is retried.
    pub(in crate::registry) fn found(&mut self, found: &FoundVersions) {
        self.scans += 1;
        for (&version, &fingerprint) in found {
            // What is known of a version stays if its folder cannot be read.
            if let Some(fingerprint) = fingerprint {
                self.found_version(version, fingerprint);
            }
        }
        for (version, known) in &mut self.known.0 {
            if known.seen(found.contains_key(version), self.scans) {
                tracing::warn!(
                    model = self.name,
                    version,
                    "the folder of a loaded version was removed; the version answers until another is published"
                );
            }
            known.retry |=
                matches!(&known.stage, Stage::Rejected(rejection) if rejection.transient);
        }
        self.known.forget_removed();
        self.settle();
    }

    fn found_version(&mut self, version: u64, fingerprint: Digest) {
        match self.known.get(version) {
            None => {
                let new = Version::new(fingerprint, self.scans);
                self.known.0.insert(version, new);
                self.log(version, ModelState::Discovered);
            }
            Some(known) if known.fingerprint != fingerprint => {
                self.files_changed(version, fingerprint);
            }
            Some(_) => {}
        }
    }

    fn files_changed(&mut self, version: u64, fingerprint: Digest) {
        let Some(known) = self.known.get_mut(version) else {
            return;
        };
        // The fingerprint is kept also of a loaded version, so that one change is one warning.
        known.fingerprint = fingerprint;
        if known.stage.model().is_some() {
            tracing::warn!(
                model = self.name,
                version,
                "the files of a loaded version changed; it is not loaded again: publish a new version instead"
            );
        } else {
            self.set_stage(version, Stage::Discovered);
        }
    }

    /// Retries rejected versions when they are wanted.
    pub(in crate::registry) fn retry_rejected(&mut self) {
        self.known.0.values_mut().for_each(Version::retry);
        self.settle();
    }

    pub(in crate::registry) fn name(&self) -> &str {
        &self.name
    }

    pub(in crate::registry) fn policy(&self) -> Policy {
        self.choice.policy
    }

    pub(in crate::registry) fn set_policy(&mut self, policy: Policy) {
        self.choice.policy = policy;
        self.settle();
    }

    /// Begins a change, and returns its number. The version that it needs is loaded whatever the policy says. The
    /// change supersedes earlier ones.
    pub(in crate::registry) fn begin_change(&mut self, needed: Option<u64>) -> u64 {
        let number = self.choice.begin_change(needed);
        // An operator who asks for a rejected version gets another attempt, perhaps after a repair.
        if let Some(known) = needed.and_then(|version| self.known.get_mut(version)) {
            known.retry();
        }
        self.settle();
        number
    }

    /// Returns whether no other change began since.
    pub(in crate::registry) fn is_last_change(&self, number: u64) -> bool {
        self.choice.is_last_change(number)
    }

    /// Ends a change, whether or not it was made. The version that it needed is no longer wanted.
    pub(in crate::registry) fn end_change(&mut self, number: u64) {
        if self.is_last_change(number) {
            self.choice.end_change();
            self.settle();
        }
    }

    /// Returns the version to load next.
    pub(in crate::registry) fn next_to_load(&self) -> Option<u64> {
        let loadable = |version: &u64| self.known.get(*version).is_some_and(Version::is_loadable);
        self.choice.wanted(&self.known).into_iter().find(loadable)
    }

    /// Begins an attempt to load a version, and returns its number.
    pub(in crate::registry) fn validating(&mut self, version: u64) -> u64 {
        // The number tells this attempt from a later one, which begins if the files change
        // meanwhile.
        self.attempts += 1;
        if let Some(known) = self.known.get_mut(version) {
            known.attempt = self.attempts;
        }
        self.set_stage(version, Stage::Validating);
        self.attempts
    }

    /// Returns whether an attempt to load a version is still wanted: the version was neither removed nor changed since.
    pub(in crate::registry) fn is_current(&self, version: u64, attempt: u64) -> bool {
        self.known
            .get(version)
            .is_some_and(|known| known.is_loading() && known.attempt == attempt)
    }

    /// Returns whether a version is being loaded, or will be if it is wanted.
    pub(in crate::registry) fn is_pending(&self, version: u64) -> bool {
        self.known
            .get(version)
            .is_some_and(|known| known.is_loading() || known.is_loadable())
    }

    /// Takes a loaded version out of service, because one of its runs was abandoned. It stays rejected, whatever the policy
    /// says, until its files change or an operator asks for it. Returns its model.
    pub(in crate::registry) fn abandoned(
        &mut self,
        version: u64,
        rejection: Rejection,
    ) -> Option<M> {
        self.known.get(version)?.stage.model()?;
        let before = self.set_stage(version, Stage::Rejected(rejection))?;
        self.settle();
        match before {
            Stage::Loaded(model) | Stage::Draining(model) => Some(model),
            _ => None,
        }
    }

    pub(in crate::registry) fn warming(&mut self, version: u64) {
        self.set_stage(version, Stage::Warming);
    }

    pub(in crate::registry) fn loaded(&mut self, version: u64, model: M) {
        self.known.set_stage(version, Stage::Loaded(model));
        self.settle();
    }

    pub(in crate::registry) fn rejected(&mut self, version: u64, rejection: Rejection) {
        if let Some(known) = self.known.get_mut(version) {
            known.retry = false;
        }
        self.set_stage(version, Stage::Rejected(rejection));
        self.settle();
    }

    /// Returns whether a version waits for its last request.
    pub(in crate::registry) fn is_draining(&self) -> bool {
        self.known
            .0
            .values()
            .any(|known| matches!(known.stage, Stage::Draining(_)))
    }

    /// Returns whether [`Self::take_unused`] would take any version.
    pub(in crate::registry) fn has_unused(&self, unused: impl Fn(&M) -> bool) -> bool {
        self.known
            .0
            .values()
            .any(|known| matches!(&known.stage, Stage::Draining(model) if unused(model)))
    }

    /// Takes the models of draining versions that are unused.
    pub(in crate::registry) fn take_unused(&mut self, unused: impl Fn(&M) -> bool) -> Vec<M> {
        let done =
            |known: &Version<M>| matches!(&known.stage, Stage::Draining(model) if unused(model));
        let done = self
            .known
            .0
            .iter()
            .filter(|(_, known)| done(known))
            .map(|(&version, _)| version);
        let mut taken = Vec::new();
        // The versions are collected first, because the loop changes them.
        for version in done.collect::<Vec<_>>() {
            if let Some(Stage::Draining(model)) = self.set_stage(version, Stage::Unloaded) {
                taken.push(model);
            }
        }
        self.known.forget_removed();
        taken
    }

    /// Returns the version that a rollback pins: the previously stable version, or else the next older one.
    pub(in crate::registry) fn rollback_target(&self) -> Option<u64> {
        self.choice.rollback_target(&self.known)
    }

    pub(in crate::registry) fn stable(&self) -> Option<u64> {
        self.choice.stable()
    }

    /// Returns the versions on disk that are older than `version` and were not rejected, the newest first.
    pub(in crate::registry) fn older(&self, version: u64) -> Vec<u64> {
        self.known
            .newest_first()
            .filter(|&older| older < version && self.known.is_available(older))
            .collect()
    }

    /// Describes a version that the policy names and that cannot serve.
    pub(in crate::registry) fn unmet(&self) -> Option<String> {
        let version = self.choice.unmet(&self.known)?;
        Some(format!(
            "policy.json: version {version} of {} does not exist or was rejected",
            self.name
        ))
    }

    pub(in crate::registry) fn is_empty(&self) -> bool {
        self.known.0.is_empty()
    }

    pub(in crate::registry) fn is_loaded(&self, version: u64) -> bool {
        self.known.loaded_model(version).is_some()
    }

    /// Returns the versions that answer requests, or `None` if no version serves.
    pub(in crate::registry) fn served(&self) -> Option<ServedVersions<M>> {
        let model = |version| Some((version, self.known.loaded_model(version)?.clone()));
        let canary = self.choice.policy.canary.and_then(|split| {
            let (version, model) = model(split.version)?;
            Some((version, model, split.percent))
        });
        let loaded = self
            .known
            .0
            .keys()
            .filter_map(|&version| model(version))
            .collect();
        Some(ServedVersions {
            // Without a stable version, a model does not serve at all, even if it has a canary.
            stable: model(self.stable()?)?,
            canary,
            loaded,
        })
    }

    /// Reports every version, in ascending order.
    pub(in crate::registry) fn reports(&self) -> impl Iterator<Item = VersionReport<M>> {
        self.known.0.iter().map(|(&version, known)| VersionReport {
            version,
            state: self.state(version, &known.stage),
            since: known.since,
            rejection: match &known.stage {
                Stage::Rejected(rejection) => Some(rejection.clone()),
                _ => None,
            },
            model: known.stage.model().cloned(),
            on_disk: known.on_disk,
        })
    }

    fn state(&self, version: u64, stage: &Stage<M>) -> ModelState {
        match stage {
            Stage::Loaded(_) if self.choice.serves(version) => ModelState::Serving,
            stage => stage.state(),
        }
    }

    /// Decides again which versions serve and which ones drain, after any change.
    fn settle(&mut self) {
        // The stable version comes first, because what is wanted depends on it. States are reported
        // last, as they depend on both.
        self.choice.update_stable(&self.known);
        self.known.drain_all_but(&self.choice.wanted(&self.known));
        self.report_changes();
    }

    fn set_stage(&mut self, version: u64, stage: Stage<M>) -> Option<Stage<M>> {
        let before = self.known.set_stage(version, stage)?;
        self.report_changes();
        Some(before)
    }

    /// Logs the versions whose state has changed.
    fn report_changes(&mut self) {
        let state =
            |(&version, known): (&u64, &Version<M>)| (version, self.state(version, &known.stage));
        let states: Vec<(u64, ModelState)> = self.known.0.iter().map(state).collect();
        for (version, state) in states {
            if self
                .known
                .get_mut(version)
                .is_some_and(|known| known.report(state))
            {
                self.log(version, state);
            }
        }
    }

    fn log(&self, version: u64, state: ModelState) {
        let model = &self.name;
        if let Some(Stage::Rejected(Rejection {
            reason, message, ..
        })) = self.known.get(version).map(|known| &known.stage)
        {
            tracing::error!(model, version, reason, "model rejected: {message}");
        } else {
            tracing::info!(model, version, "model {state}");
        }
    }
}

#[cfg(test)]
mod tests;
