//! The decision which version of a model serves, and which versions are loaded.

use super::{Versions, version::Version};

impl<M> Versions<M> {
    /// Decides again which versions serve and which ones drain, after any change.
    pub(super) fn choose(&mut self) {
        // The stable version comes first, because what is wanted depends on it.
        let candidates = self.candidates();
        let is_loaded = |&version: &u64| self.has_model(version);
        // Until the best candidate is loaded, the stable version stays, rather than another in between.
        let best = candidates.first().copied().filter(is_loaded);
        let any = || candidates.iter().copied().find(is_loaded);
        let stable = best.or(self.loaded_stable()).or_else(any);
        if stable != self.stable {
            self.previous = std::mem::replace(&mut self.stable, stable);
        }
        let wanted = self.wanted();
        for (version, known) in &mut self.known {
            known.drain_unless(wanted.contains(version));
        }
    }

    /// Returns the version that a rollback pins: the previously stable version, or else the next older one.
    pub(in crate::registry) fn rollback_target(&self) -> Option<u64> {
        let stable = self.stable?;
        let older = |&version: &u64| version < stable && self.is_usable(version);
        let previous = self.previous.filter(older);
        previous.or_else(|| self.newest_first().find(older))
    }

    /// Returns the versions that should be loaded, the most urgent one first.
    pub(super) fn wanted(&self) -> Vec<u64> {
        let best = self.candidates().first().copied();
        let canary = self.canary().filter(|&canary| self.is_usable(canary));
        let serving = distinct(best.into_iter().chain(canary).chain(self.stable));
        // A rollback prefers the version that was stable before, so that one comes first of those
        // that stay loaded beside the serving ones.
        let older = self.newest_first().filter(|&version| best > Some(version));
        let retained = self.previous.into_iter().chain(older);
        let available = |&version: &u64| self.is_available(version) && !serving.contains(&version);
        let mut retained = distinct(retained.filter(available));
        // A loaded version is not unloaded in favour of one that might be loaded.
        retained.sort_by_key(|&version| !self.has_model(version));
        retained.truncate(self.retain);
        // A call waits for the version that a change needs, which makes it the most urgent one.
        let needed = self.needed.filter(|&version| self.is_usable(version));
        distinct(needed.into_iter().chain(serving).chain(retained))
    }

    /// Says what a version waits for that is not loaded, and was not rejected.
    pub(super) fn waits_for(&self, version: u64) -> String {
        let name = &self.name;
        if self.wanted().contains(&version) {
            return "the server loads it after other versions".to_owned();
        }
        if self.needed.is_some() {
            return "a change of what serves is in progress".to_owned();
        }
        let pinned = self.policy.pinned.filter(|_| self.stable < Some(version));
        match (pinned, self.stable) {
            (Some(pinned), _) => format!(
                "version {pinned} is pinned; `hlorank models unpin {name}` serves the newest version, `hlorank models pin {name}@{version}` \
                 this one"
            ),
            (None, Some(stable)) => format!(
                "version {stable} serves, and --retain-versions keeps {} beside it; `hlorank models pin {name}@{version}` serves this one",
                self.retain
            ),
            (None, None) => "the server loads a newer version first".to_owned(),
        }
    }

    /// Returns the stable version, unless it was taken out of service.
    fn loaded_stable(&self) -> Option<u64> {
        self.stable.filter(|&stable| self.has_model(stable))
    }

    /// Returns the versions that should be stable, the best one first.
    fn candidates(&self) -> Vec<u64> {
        let pinned = self.policy.pinned;
        match (
            pinned.filter(|&pinned| self.is_usable(pinned)),
            self.loaded_stable(),
        ) {
            // Nothing else takes over while a change is in progress.
            (_, Some(stable)) if self.needed.is_some() => vec![stable],
            (Some(pinned), _) => vec![pinned],
            // The stable version is better than one that nobody chose.
            (None, Some(stable)) if pinned.is_some() => vec![stable],
            (None, _) => self.newest(),
        }
    }

    /// Returns the usable versions, the newest first. The canary is one of them only if there is no other.
    fn newest(&self) -> Vec<u64> {
        // A version whose folder was removed is no candidate, except that the stable one goes on
        // until there is another.
        let is_candidate = |&version: &u64| {
            self.is_available(version) || (self.stable == Some(version) && self.is_usable(version))
        };
        let mut newest: Vec<u64> = self.newest_first().filter(is_candidate).collect();
        // A stable version whose folder is gone serves until there is a newer one, or any that was
        // published since.
        let gone = self
            .stable
            .and_then(|stable| self.known.get(&stable)?.gone_since);
        if let Some(gone) = gone {
            newest.sort_by_key(|version| {
                let known = self.known.get(version);
                known.is_none_or(|known| known.found_in < gone)
            });
        }
        let is_canary = |version: &u64| self.canary() == Some(*version);
        if !newest.iter().all(is_canary) {
            newest.retain(|version| !is_canary(version));
        }
        newest
    }

    fn newest_first(&self) -> impl Iterator<Item = u64> {
        self.known.keys().rev().copied()
    }

    /// Returns whether a version may serve, as far as is known.
    pub(super) fn is_usable(&self, version: u64) -> bool {
        self.is(version, Version::is_usable)
    }

    /// Returns whether a version may serve, and its folder is there.
    fn is_available(&self, version: u64) -> bool {
        self.is(version, |known| known.is_usable() && known.on_disk)
    }

    /// Returns whether a version is loaded or draining.
    fn has_model(&self, version: u64) -> bool {
        self.is(version, |known| known.model().is_some())
    }

    /// Returns whether a version is known, and something holds of it.
    pub(super) fn is(&self, version: u64, holds: impl Fn(&Version<M>) -> bool) -> bool {
        self.known.get(&version).is_some_and(holds)
    }

    /// Returns the versions on disk that are older than `version` and were not rejected, the newest first.
    pub(in crate::registry) fn older(&self, version: u64) -> Vec<u64> {
        let is_older = |&older: &u64| older < version && self.is_available(older);
        self.newest_first().filter(is_older).collect()
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
