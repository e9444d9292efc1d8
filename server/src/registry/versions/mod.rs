use std::{collections::BTreeMap, time::SystemTime};

use hlorank_graph::Digest;

use super::{Policy, folder::FoundVersions};
use crate::model::{ModelState, Rejection};

/// The versions of one model: which are there, how far each is, and which of them serve. `M` is a loaded version.
///
/// Decides; reading, checking and freeing are the loader's.
#[derive(Debug)]
pub(super) struct Versions<M> {
    name: String,
    policy: Policy,
    /// Versions that stay loaded beside those that serve.
    retain: usize,
    known: BTreeMap<u64, Version<M>>,
    /// What requests reach unless they ask for something else; always loaded.
    stable: Option<u64>,
    /// What was stable before.
    previous: Option<u64>,
    /// The last change that an operator asked for, and the version that it needs.
    change: Change,
}

/// A change that may have to wait for a version. A later one overtakes it.
#[derive(Debug, Default)]
struct Change {
    number: u64,
    asked_for: Option<u64>,
}

#[derive(Debug)]
struct Version<M> {
    fingerprint: Digest,
    on_disk: bool,
    stage: Stage<M>,
    /// The state that was told last, and since when it is that.
    told: ModelState,
    since: SystemTime,
    /// Whether it is to be tried again although it was rejected.
    again: bool,
}

/// How far a version is.
#[derive(Debug)]
enum Stage<M> {
    Discovered,
    Validating,
    Warming,
    Loaded(M),
    /// Loaded, but no request reaches it any more: it goes once the last one is done.
    Leaving(M),
    Rejected(Rejection),
    Unloaded,
}

/// One version, as it is told.
#[derive(Clone, Debug)]
pub(super) struct Report<M> {
    pub(super) version: u64,
    pub(super) state: ModelState,
    pub(super) since: SystemTime,
    pub(super) rejection: Option<Rejection>,
    /// Where it is loaded.
    pub(super) model: Option<M>,
}

/// What answers requests for a model.
#[derive(Clone, Debug)]
pub(super) struct Served<M> {
    pub(super) stable: (u64, M),
    /// The canary, and which percentage of graphs is its.
    pub(super) canary: Option<(u64, M, u8)>,
    /// Every version that can be asked for.
    pub(super) loaded: BTreeMap<u64, M>,
}

impl<M: Clone> Versions<M> {
    pub(super) fn new(name: String, retain: usize) -> Self {
        Self {
            name,
            policy: Policy::default(),
            retain,
            known: BTreeMap::new(),
            stable: None,
            previous: None,
            change: Change::default(),
        }
    }

    /// Takes note of what is on disk. A version that was rejected or unloaded is new again when its files changed; one
    /// that is loaded stays what it is. One that was rejected for what passes is tried again.
    pub(super) fn found(&mut self, found: &FoundVersions) {
        for (&version, &fingerprint) in found {
            match (self.known.get_mut(&version), fingerprint) {
                (None, Some(fingerprint)) => self.discovered(version, fingerprint),
                (Some(known), Some(fingerprint)) if known.fingerprint != fingerprint => {
                    known.fingerprint = fingerprint;
                    self.files_changed(version);
                }
                // As before, or not readable.
                _ => {}
            }
        }
        for (version, known) in &mut self.known {
            known.on_disk = found.contains_key(version);
            known.again |= matches!(&known.stage, Stage::Rejected(rejection) if rejection.transient);
        }
        self.known.retain(|_, version| version.on_disk || version.stage.model().is_some());
        self.settle();
    }

    fn discovered(&mut self, version: u64, fingerprint: Digest) {
        let new = Version {
            fingerprint,
            on_disk: true,
            stage: Stage::Discovered,
            told: ModelState::Discovered,
            since: now(),
            again: false,
        };
        self.known.insert(version, new);
        self.log(version);
    }

    fn files_changed(&mut self, version: u64) {
        let Some(known) = self.known.get(&version) else { return };
        if known.stage.model().is_some() {
            tracing::warn!(
                model = self.name,
                version,
                "the files of a loaded version changed; it is not loaded again: publish a new version"
            );
        } else {
            self.set(version, Stage::Discovered);
        }
    }

    /// Has rejected versions tried again, once they are wanted.
    pub(super) fn retry_rejected(&mut self) {
        for known in self.known.values_mut() {
            known.again = matches!(known.stage, Stage::Rejected(_));
        }
        self.settle();
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn policy(&self) -> Policy {
        self.policy
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.settle();
    }

    /// Begins a change that needs a version, which is loaded whatever the policy says, or none. It overtakes those that
    /// began before.
    pub(super) fn begin_change(&mut self, asked_for: Option<u64>) -> u64 {
        let number = self.change.number + 1;
        self.change = Change { number, asked_for };
        if let Some(known) = asked_for.and_then(|version| self.known.get_mut(&version)) {
            known.again = true;
        }
        self.settle();
        number
    }

    /// Whether no other change began since.
    pub(super) fn is_last_change(&self, number: u64) -> bool {
        self.change.number == number
    }

    /// Ends a change, whether or not it was made: what it needed is wanted no more.
    pub(super) fn end_change(&mut self, number: u64) {
        if self.is_last_change(number) {
            self.change.asked_for = None;
            self.settle();
        }
    }

    /// The version to load next.
    pub(super) fn next_to_load(&self) -> Option<u64> {
        let loadable =
            |version: &u64| self.known.get(version).is_some_and(|known| known.on_disk && known.is_untried());
        self.wanted().into_iter().find(loadable)
    }

    pub(super) fn validating(&mut self, version: u64) {
        self.set(version, Stage::Validating);
    }

    pub(super) fn warming(&mut self, version: u64) {
        self.set(version, Stage::Warming);
    }

    pub(super) fn loaded(&mut self, version: u64, model: M) {
        if let Some(known) = self.known.get_mut(&version) {
            known.stage = Stage::Loaded(model);
        }
        self.settle();
    }

    pub(super) fn rejected(&mut self, version: u64, rejection: Rejection) {
        if let Some(known) = self.known.get_mut(&version) {
            known.again = false;
        }
        self.set(version, Stage::Rejected(rejection));
        self.settle();
    }

    /// Whether a version waits for its last request.
    pub(super) fn is_leaving(&self) -> bool {
        self.known.values().any(|known| matches!(known.stage, Stage::Leaving(_)))
    }

    /// Whether [`Self::take_unused`] would take any.
    pub(super) fn has_unused(&self, unused: impl Fn(&M) -> bool) -> bool {
        self.known.values().any(|known| matches!(&known.stage, Stage::Leaving(model) if unused(model)))
    }

    /// Takes the leaving versions that nobody uses any more.
    pub(super) fn take_unused(&mut self, unused: impl Fn(&M) -> bool) -> Vec<M> {
        let leaving = |known: &Version<M>| matches!(&known.stage, Stage::Leaving(model) if unused(model));
        let gone = self.known.iter().filter(|(_, known)| leaving(known)).map(|(&version, _)| version);
        let mut taken = Vec::new();
        for version in gone.collect::<Vec<_>>() {
            if let Some(Stage::Leaving(model)) = self.set(version, Stage::Unloaded) {
                taken.push(model);
            }
        }
        self.known.retain(|_, known| known.on_disk || known.stage.model().is_some());
        taken
    }

    /// The version that a rollback returns to: what served before, else the next older one.
    pub(super) fn rollback_target(&self) -> Option<u64> {
        let stable = self.stable?;
        let older = |&version: &u64| version < stable && self.usable(version);
        self.previous.filter(older).or_else(|| self.known.keys().rev().copied().find(older))
    }

    pub(super) fn stable(&self) -> Option<u64> {
        self.stable
    }

    /// Whether a version would serve if it were loaded.
    pub(super) fn would_serve(&self, version: u64) -> bool {
        let wanted_for = [self.candidates().first().copied(), self.canary(), self.change.asked_for];
        wanted_for.contains(&Some(version))
    }

    /// The versions on disk that are older than one, the newest first.
    pub(super) fn older(&self, version: u64) -> Vec<u64> {
        self.known
            .range(..version)
            .rev()
            .filter(|(_, known)| known.on_disk)
            .map(|(&older, _)| older)
            .collect()
    }

    /// What the policy asks for and cannot have, for people.
    pub(super) fn unmet(&self) -> Option<String> {
        let Policy { pinned, canary } = self.policy;
        let unmet = |version: &u64| !self.usable(*version);
        let unmet = pinned.filter(unmet).or(canary.map(|split| split.version).filter(unmet))?;
        Some(format!("policy.json: version {unmet} of {} is not there, or was rejected", self.name))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    pub(super) fn is_loaded(&self, version: u64) -> bool {
        self.loaded_model(version).is_some()
    }

    /// The loaded model of a version.
    pub(super) fn loaded_model(&self, version: u64) -> Option<&M> {
        match &self.known.get(&version)?.stage {
            Stage::Loaded(model) => Some(model),
            _ => None,
        }
    }

    /// What answers requests; `None` as long as no version serves.
    pub(super) fn served(&self) -> Option<Served<M>> {
        let model = |version| Some((version, self.loaded_model(version)?.clone()));
        let canary = self.policy.canary.and_then(|split| {
            let (version, model) = model(split.version)?;
            Some((version, model, split.percent))
        });
        let loaded = self.known.keys().filter_map(|&version| model(version)).collect();
        Some(Served { stable: model(self.stable?)?, canary, loaded })
    }

    /// Every version, ascending.
    pub(super) fn reports(&self) -> impl Iterator<Item = Report<M>> {
        self.known.iter().map(|(&version, known)| Report {
            version,
            state: self.state(version, &known.stage),
            since: known.since,
            rejection: match &known.stage {
                Stage::Rejected(rejection) => Some(rejection.clone()),
                _ => None,
            },
            model: known.stage.model().cloned(),
        })
    }

    fn state(&self, version: u64, stage: &Stage<M>) -> ModelState {
        match stage {
            Stage::Discovered => ModelState::Discovered,
            Stage::Validating => ModelState::Validating,
            Stage::Warming => ModelState::Warming,
            Stage::Loaded(_) if self.serves(version) => ModelState::Serving,
            Stage::Loaded(_) | Stage::Leaving(_) => ModelState::Retained,
            Stage::Rejected(_) => ModelState::Rejected,
            Stage::Unloaded => ModelState::Unloaded,
        }
    }

    fn serves(&self, version: u64) -> bool {
        self.stable == Some(version) || self.canary() == Some(version)
    }

    fn canary(&self) -> Option<u64> {
        self.policy.canary.map(|split| split.version)
    }

    /// Whether a version may serve, as far as is known.
    fn usable(&self, version: u64) -> bool {
        self.known.get(&version).is_some_and(|known| match known.stage {
            Stage::Loaded(_) | Stage::Leaving(_) => true,
            Stage::Rejected(_) => known.again && known.on_disk,
            _ => known.on_disk,
        })
    }

    /// What should be stable, best first.
    fn candidates(&self) -> Vec<u64> {
        if self.change.asked_for.is_some()
            && let Some(stable) = self.stable
        {
            // Until the change is made, nothing else takes over.
            return vec![stable];
        }
        if let Some(pinned) = self.policy.pinned.filter(|&pinned| self.usable(pinned)) {
            return vec![pinned];
        }
        if self.policy.pinned.is_some() && self.stable.is_some() {
            // Better than a version that nobody chose.
            return self.stable.into_iter().collect();
        }
        let here = |version: &&u64| {
            // The folder of the stable version may go: it serves until there is a newer one.
            self.usable(**version) && (self.known[*version].on_disk || self.stable == Some(**version))
        };
        let newest: Vec<u64> = self.known.keys().rev().filter(here).copied().collect();
        let stable: Vec<u64> =
            newest.iter().copied().filter(|&version| self.canary() != Some(version)).collect();
        if stable.is_empty() { newest } else { stable }
    }

    /// What should be loaded, most urgent first.
    fn wanted(&self) -> Vec<u64> {
        let best = self.candidates().first().copied();
        let canary = self.canary().filter(|&canary| self.usable(canary));
        let mut serving = Vec::new();
        best.into_iter().chain(canary).chain(self.stable).for_each(|version| push_new(&mut serving, version));

        let older = self.known.keys().rev().copied().filter(|&version| best > Some(version));
        let retained = self.previous.into_iter().chain(older);
        let here = |version: &u64| self.usable(*version) && self.known[version].on_disk;
        let mut kept = Vec::new();
        let retained = retained.filter(|version| here(version) && !serving.contains(version));
        retained.for_each(|version| push_new(&mut kept, version));
        // What is loaded does not leave for what only may be.
        kept.sort_by_key(|&version| !self.loaded_or_leaving(version));
        kept.truncate(self.retain);

        let mut wanted: Vec<u64> =
            self.change.asked_for.into_iter().filter(|&version| self.usable(version)).collect();
        serving.into_iter().chain(kept).for_each(|version| push_new(&mut wanted, version));
        wanted
    }

    /// Settles what serves and what leaves, after anything changed.
    fn settle(&mut self) {
        let stable = self.best_loaded();
        if stable != self.stable {
            self.previous = std::mem::replace(&mut self.stable, stable);
        }
        let wanted = self.wanted();
        for (version, known) in &mut self.known {
            let stage = std::mem::replace(&mut known.stage, Stage::Unloaded);
            known.stage = match stage {
                Stage::Loaded(model) if !wanted.contains(version) => Stage::Leaving(model),
                Stage::Leaving(model) if wanted.contains(version) => Stage::Loaded(model),
                stage => stage,
            };
        }
        self.tell();
    }

    /// Notes which versions are in another state than was told.
    fn tell(&mut self) {
        let state = |(&version, known): (&u64, &Version<M>)| (version, self.state(version, &known.stage));
        let states: Vec<(u64, ModelState)> = self.known.iter().map(state).collect();
        for (version, state) in states {
            if let Some(known) = self.known.get_mut(&version).filter(|known| known.told != state) {
                (known.told, known.since) = (state, now());
                self.log(version);
            }
        }
    }

    /// The best candidate if it is loaded. Until then, what is stable stays, rather than another one in between.
    fn best_loaded(&self) -> Option<u64> {
        let candidates = self.candidates();
        let best = candidates.first().copied().filter(|&best| self.loaded_or_leaving(best));
        let any = || candidates.iter().copied().find(|&version| self.loaded_or_leaving(version));
        best.or(self.stable).or_else(any)
    }

    fn loaded_or_leaving(&self, version: u64) -> bool {
        self.known.get(&version).is_some_and(|known| known.stage.model().is_some())
    }

    fn set(&mut self, version: u64, stage: Stage<M>) -> Option<Stage<M>> {
        let known = self.known.get_mut(&version)?;
        let before = std::mem::replace(&mut known.stage, stage);
        self.tell();
        Some(before)
    }

    fn log(&self, version: u64) {
        let Some(known) = self.known.get(&version) else { return };
        let (model, state) = (&self.name, self.state(version, &known.stage));
        if let Stage::Rejected(Rejection { reason, message, .. }) = &known.stage {
            tracing::error!(model, version, reason, "model rejected: {message}");
        } else {
            tracing::info!(model, version, "model {state}");
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "for those who are told")]
fn now() -> SystemTime {
    SystemTime::now()
}

impl<M> Version<M> {
    /// Whether it could be loaded, as far as is known.
    fn is_untried(&self) -> bool {
        match self.stage {
            Stage::Discovered | Stage::Unloaded => true,
            Stage::Rejected(_) => self.again,
            _ => false,
        }
    }
}

impl<M> Stage<M> {
    /// Where it is loaded.
    fn model(&self) -> Option<&M> {
        match self {
            Self::Loaded(model) | Self::Leaving(model) => Some(model),
            _ => None,
        }
    }
}

fn push_new(versions: &mut Vec<u64>, version: u64) {
    if !versions.contains(&version) {
        versions.push(version);
    }
}

#[cfg(test)]
mod tests;
