use super::known::KnownVersions;
use crate::registry::policy::Policy;

/// Decides which version of a model serves, and which versions are loaded.
#[derive(Debug)]
pub(super) struct Choice {
    pub(super) policy: Policy,
    /// Number of versions that stay loaded beside those that serve.
    retain: usize,
    /// The version that answers requests by default; always loaded.
    stable: Option<u64>,
    /// The version that was stable before.
    previous: Option<u64>,
    /// The last change that an operator requested.
    change: Change,
}

/// A change that may have to wait for a version to be loaded. A later change supersedes it.
#[derive(Debug, Default)]
struct Change {
    number: u64,
    /// The version that the change needs.
    needed: Option<u64>,
}

impl Choice {
    pub(super) fn new(retain: usize) -> Self {
        Self {
            policy: Policy::default(),
            retain,
            stable: None,
            previous: None,
            change: Change::default(),
        }
    }

    pub(super) fn stable(&self) -> Option<u64> {
        self.stable
    }

    pub(super) fn canary(&self) -> Option<u64> {
        self.policy.canary.map(|split| split.version)
    }

    /// Returns whether a version serves if it is loaded.
    pub(super) fn serves(&self, version: u64) -> bool {
        self.stable == Some(version) || self.canary() == Some(version)
    }

    /// Begins a change, and returns its number. The version that it needs is loaded whatever the policy says.
    pub(super) fn begin_change(&mut self, needed: Option<u64>) -> u64 {
        let number = self.change.number + 1;
        self.change = Change { number, needed };
        number
    }

    /// Returns whether no other change began since.
    pub(super) fn is_last_change(&self, number: u64) -> bool {
        self.change.number == number
    }

    /// Ends the last change. The version that it needed is no longer wanted.
    pub(super) fn end_change(&mut self) {
        self.change.needed = None;
    }

    /// Replaces the stable version if the best candidate is loaded.
    pub(super) fn update_stable<M>(&mut self, known: &KnownVersions<M>) {
        let stable = self.best_loaded(known);
        if stable != self.stable {
            self.previous = std::mem::replace(&mut self.stable, stable);
        }
    }

    /// Returns the best candidate if it is loaded. Until then the stable version stays, rather than another in between.
    fn best_loaded<M>(&self, known: &KnownVersions<M>) -> Option<u64> {
        let candidates = self.candidates(known);
        let best = candidates
            .first()
            .copied()
            .filter(|&best| known.has_model(best));
        let any = || {
            candidates
                .iter()
                .copied()
                .find(|&version| known.has_model(version))
        };
        best.or(self.loaded_stable(known)).or_else(any)
    }

    /// Returns the stable version, unless it was taken out of service.
    fn loaded_stable<M>(&self, known: &KnownVersions<M>) -> Option<u64> {
        self.stable.filter(|&stable| known.has_model(stable))
    }

    /// Returns the version that a rollback pins: the previously stable version, or else the next older one.
    pub(super) fn rollback_target<M>(&self, known: &KnownVersions<M>) -> Option<u64> {
        let stable = self.stable?;
        let older = |&version: &u64| version < stable && known.is_usable(version);
        self.previous
            .filter(older)
            .or_else(|| known.newest_first().find(older))
    }

    /// Returns a version that the policy names and that cannot serve.
    pub(super) fn unmet<M>(&self, known: &KnownVersions<M>) -> Option<u64> {
        let unmet = |version: &u64| !known.is_usable(*version);
        self.policy
            .pinned
            .filter(unmet)
            .or(self.canary().filter(unmet))
    }

    /// Returns the versions that should be stable, the best one first.
    fn candidates<M>(&self, known: &KnownVersions<M>) -> Vec<u64> {
        if self.change.needed.is_some()
            && let Some(stable) = self.loaded_stable(known)
        {
            // Nothing else takes over while a change is in progress.
            return vec![stable];
        }
        if let Some(pinned) = self.policy.pinned.filter(|&pinned| known.is_usable(pinned)) {
            return vec![pinned];
        }
        if self.policy.pinned.is_some()
            && let Some(stable) = self.loaded_stable(known)
        {
            // The stable version is better than one that nobody chose.
            return vec![stable];
        }
        self.newest(known)
    }

    /// Returns the usable versions, the newest first. The canary is one of them only if there is no other.
    fn newest<M>(&self, known: &KnownVersions<M>) -> Vec<u64> {
        // A version whose folder was removed is no candidate, except that the stable one goes on
        // until there is another.
        let available = |&version: &u64| {
            known.is_usable(version) && (known.is_on_disk(version) || self.stable == Some(version))
        };
        let mut newest: Vec<u64> = known.newest_first().filter(available).collect();
        // A stable version whose folder is gone serves until there is a newer one, or any that was
        // published since.
        let gone = self.stable.and_then(|stable| known.get(stable)?.gone_since);
        if let Some(gone) = gone {
            newest.sort_by_key(|&version| {
                known.get(version).is_none_or(|known| known.found_in < gone)
            });
        }
        let is_canary = |version: &u64| self.canary() == Some(*version);
        if !newest.iter().all(is_canary) {
            newest.retain(|version| !is_canary(version));
        }
        newest
    }

    /// Returns the versions that should be loaded, the most urgent one first.
    pub(super) fn wanted<M>(&self, known: &KnownVersions<M>) -> Vec<u64> {
        let best = self.candidates(known).first().copied();
        let canary = self.canary().filter(|&canary| known.is_usable(canary));
        let serving = distinct(best.into_iter().chain(canary).chain(self.stable));
        let retained = self.retained(known, best, &serving);
        let needed = self.change.needed;
        let needed = needed.filter(|&version| known.is_usable(version));
        // A call waits for the version that a change needs, which makes it the most urgent one.
        distinct(needed.into_iter().chain(serving).chain(retained))
    }

    /// Returns the versions that stay loaded beside those that serve.
    fn retained<M>(
        &self,
        known: &KnownVersions<M>,
        best: Option<u64>,
        serving: &[u64],
    ) -> Vec<u64> {
        // A rollback prefers the version that was stable before, so that one comes first.
        let older = known.newest_first().filter(|&version| best > Some(version));
        let candidates = self.previous.into_iter().chain(older);
        let available = |&version: &u64| known.is_available(version) && !serving.contains(&version);
        let mut retained = distinct(candidates.filter(available));
        // A loaded version is not unloaded in favour of one that might be loaded.
        retained.sort_by_key(|&version| !known.has_model(version));
        retained.truncate(self.retain);
        retained
    }
}

/// Returns versions in the order of their first occurrence.
fn distinct(versions: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut distinct = Vec::new();
    for version in versions {
        if !distinct.contains(&version) {
            distinct.push(version);
        }
    }
    distinct
}
