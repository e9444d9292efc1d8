use std::sync::Arc;

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    catalogue::{Catalogue, CatalogueState},
    error::AdminError,
    handle::Registry,
    policy::{CanarySplit, Policies, Policy, PolicyLock},
    versions::Versions,
};
use crate::model::Model;

/// A change that an operator asked for, and that is not made yet.
struct PendingChange {
    /// Name of the model.
    name: String,
    change: PolicyChange,
    /// Changes of a model are numbered. One that a later change supersedes is not made.
    number: u64,
    /// The version that must be loaded first.
    needed: Option<u64>,
}

impl Registry {
    /// Scans the model folder and retries rejected versions. Returns when that is done.
    pub async fn reload(&self) -> Result<(), AdminError> {
        self.shared.change(Catalogue::retry_rejected);
        self.scan().await
    }

    /// Makes a change, now and after a restart. Loads and checks the version that it needs first. A change that a later
    /// one supersedes is not made.
    pub async fn apply(&self, name: &str, change: PolicyChange) -> Result<(), AdminError> {
        if self.shared.catalogue().get(name).is_none() {
            self.scan().await?;
        }
        let unknown = || AdminError::UnknownModel(name.to_owned());
        let pending = self.shared.change(|catalogue| {
            let versions = catalogue.get_mut(name).ok_or_else(unknown)?;
            let needed = change.needed(versions)?;
            Ok::<_, AdminError>(PendingChange {
                name: name.to_owned(),
                change,
                number: versions.begin_change(needed),
                needed,
            })
        })?;
        let number = pending.number;
        let made = async {
            if let Some(version) = pending.needed {
                self.wait_until_loaded(&pending, version).await?;
            }
            let shared = Arc::clone(&self.shared);
            let saved = spawn_blocking(move || pending.save(&shared)).await;
            saved.unwrap_or(Err(AdminError::Failed))
        };
        let made: Result<(), AdminError> = made.await;
        // A change that fails must end, too: until then, no other version takes over.
        self.shared
            .with_model(name, |versions| versions.end_change(number));
        self.shared.wake();
        made?;
        if change == PolicyChange::Unpin {
            // The newest version may not be loaded yet.
            self.scan().await?;
        }
        Ok(())
    }

    /// Waits until a version is loaded that a change needs.
    async fn wait_until_loaded(
        &self,
        pending: &PendingChange,
        version: u64,
    ) -> Result<(), AdminError> {
        let name = &pending.name;
        let versions_are = |check: &dyn Fn(&Versions<Arc<Model>>) -> bool| {
            self.shared.catalogue().get(name).is_some_and(check)
        };
        let is_loaded = || versions_are(&|versions| versions.is_loaded(version));
        // The change may still get the version that it needs.
        let is_pending = || {
            versions_are(&|versions| {
                versions.is_last_change(pending.number) && versions.is_pending(version)
            })
        };
        // The subscription begins before the state is read, so that no change is missed.
        let mut changes = self.changes();
        if !is_loaded() {
            self.scan().await?;
        }
        while is_pending() {
            changes.changed().await.map_err(|_| AdminError::Stopping)?;
            if self.shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
        }
        if is_loaded() {
            return Ok(());
        }
        let mut reports = self.models().into_iter();
        let report = reports.find(|report| report.name == *name && report.version == version);
        let name = name.clone();
        Err(match report.map(|report| report.rejection) {
            Some(Some(rejection)) => AdminError::Rejected(name, version, rejection),
            // It was not loaded, because a later change does not need it.
            Some(None) => AdminError::Superseded(name),
            None => AdminError::UnknownVersion(name, version),
        })
    }

    /// Makes the loader scan the folder, and waits until it has loaded every wanted version.
    async fn scan(&self) -> Result<(), AdminError> {
        let (done, waited) = oneshot::channel();
        {
            let mut catalogue = self.shared.catalogue();
            if self.shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
            catalogue.waiting.push(done);
        }
        self.shared.wake();
        Ok(waited.await.map_err(|_| AdminError::Stopping)??)
    }
}

impl PendingChange {
    /// Saves the policy to disk, then follows it. Blocks.
    fn save(self, shared: &CatalogueState) -> Result<(), AdminError> {
        // This lock comes first, because it may take long, and every scan needs the other one.
        let lock = PolicyLock::acquire(&shared.folder)?;
        // The catalogue follows the file in the order of its changes.
        let _published = shared.lock_policies();
        if shared.is_stopping() {
            return Err(AdminError::Stopping);
        }
        let name = &self.name;
        let stable = match shared.catalogue().get(name) {
            None => return Err(AdminError::UnknownModel(name.clone())),
            Some(versions) if versions.is_last_change(self.number) => versions.stable(),
            Some(_) => return Err(AdminError::Superseded(name.clone())),
        };
        let policies = Policies::change(&lock, name, |before| {
            self.change.policy(name, before, self.needed, stable)
        })?;
        shared.change(|catalogue| catalogue.set_policies(policies));
        Ok(())
    }
}

/// A change of which versions of a model serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyChange {
    /// Makes a version serve even if there are newer ones. If it is the canary, the canary ends.
    Pin(u64),
    /// Makes the newest valid version serve every graph.
    Unpin,
    /// Pins the previously stable version, or else the next older one. Ends a canary.
    Rollback,
    /// Makes a second version serve a share of the graphs, and pins the stable version.
    BeginCanary(CanarySplit),
    /// Makes the stable version serve every graph. It stays pinned.
    EndCanary,
}

impl PolicyChange {
    /// Returns the version that must be loaded before the change is made. Fails if the change cannot be made, so that
    /// nothing is loaded in vain.
    pub(super) fn needed<M: Clone>(
        self,
        versions: &Versions<M>,
    ) -> Result<Option<u64>, AdminError> {
        let name = versions.name();
        match self {
            Self::Pin(version) => Ok(Some(version)),
            Self::Rollback => match versions.rollback_target() {
                None => Err(AdminError::NoOlderVersion(name.to_owned())),
                target => Ok(target),
            },
            Self::BeginCanary(split) => {
                check_canary(name, split, versions.stable())?;
                Ok(Some(split.version))
            }
            Self::Unpin | Self::EndCanary => Ok(None),
        }
    }

    /// Returns the policy after the change. `needed` is the version that was loaded for it. The stable version may be
    /// another than before that.
    pub(super) fn policy(
        self,
        name: &str,
        before: Policy,
        needed: Option<u64>,
        stable: Option<u64>,
    ) -> Result<Policy, AdminError> {
        Ok(match self {
            Self::Pin(version) => Policy {
                pinned: Some(version),
                canary: before.canary.filter(|split| split.version != version),
            },
            Self::Unpin => Policy::default(),
            Self::Rollback => Policy {
                pinned: needed,
                canary: None,
            },
            Self::BeginCanary(split) => Policy {
                pinned: Some(check_canary(name, split, stable)?),
                canary: Some(split),
            },
            Self::EndCanary => Policy {
                canary: None,
                ..before
            },
        })
    }
}

/// Returns the stable version, beside which a canary may serve.
fn check_canary(name: &str, split: CanarySplit, stable: Option<u64>) -> Result<u64, AdminError> {
    match stable {
        None => Err(AdminError::NothingServes(name.to_owned())),
        Some(version) if version == split.version => {
            Err(AdminError::ServesAlready(name.to_owned(), version))
        }
        Some(version) => Ok(version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_leads_to_one_policy() {
        let [one, two, three] = [1, 2, 3].map(Policy::of_pin);
        let before = two.with_canary(3);
        for (change, needed, after) in [
            (PolicyChange::Pin(1), Some(1), one.with_canary(3)),
            (PolicyChange::Pin(3), Some(3), three),
            (PolicyChange::Unpin, None, Policy::default()),
            (PolicyChange::Rollback, Some(1), one),
            (PolicyChange::EndCanary, None, two),
        ] {
            let changed = change.policy("a", before, needed, Some(2));
            assert_eq!(changed.unwrap(), after, "{change:?}");
        }
    }

    #[test]
    fn a_canary_serves_beside_another_version_that_is_pinned() {
        let expected = Policy::of_pin(2).with_canary(3);
        let begin = PolicyChange::BeginCanary(expected.canary.unwrap());
        let after = |stable| begin.policy("a", Policy::default(), Some(3), stable);
        assert_eq!(after(Some(2)).unwrap(), expected);
        let same = after(Some(3));
        assert!(
            matches!(same, Err(AdminError::ServesAlready { .. })),
            "{same:?}"
        );
        let none = after(None);
        assert!(
            matches!(none, Err(AdminError::NothingServes { .. })),
            "{none:?}"
        );
    }
}
