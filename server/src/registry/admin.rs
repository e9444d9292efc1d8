use std::sync::Arc;

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    admin_error::AdminError, catalogue::Catalogue, handle::Registry, policy::Policies,
    policy_change::PolicyChange, policy_lock::PolicyLock, shared::Shared,
};

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
        self.find(name).await?;
        let pending = self.begin(name, change)?;
        let number = pending.number;
        let made = self.make(pending).await;
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

    fn begin(&self, name: &str, change: PolicyChange) -> Result<PendingChange, AdminError> {
        self.shared.change(|catalogue| {
            let unknown = || AdminError::UnknownModel {
                name: name.to_owned(),
            };
            let versions = catalogue.get_mut(name).ok_or_else(unknown)?;
            let needed = change.needed(versions)?;
            Ok(PendingChange {
                name: name.to_owned(),
                change,
                number: versions.begin_change(needed),
                needed,
            })
        })
    }

    async fn make(&self, pending: PendingChange) -> Result<(), AdminError> {
        if let Some(version) = pending.needed {
            self.wait_until_loaded(&pending.name, version, pending.number)
                .await?;
        }
        let shared = Arc::clone(&self.shared);
        let saved = spawn_blocking(move || pending.save(&shared)).await;
        saved.unwrap_or(Err(AdminError::Failed))
    }

    /// Waits until a version is loaded that the change with this number needs.
    async fn wait_until_loaded(
        &self,
        name: &str,
        version: u64,
        number: u64,
    ) -> Result<(), AdminError> {
        // The subscription begins before the state is read, so that no change is missed.
        let mut changes = self.changes();
        if !self.is_loaded(name, version) {
            self.scan().await?;
        }
        while self.is_pending(name, version, number) {
            changes.changed().await.map_err(|_| AdminError::Stopping)?;
            if self.shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
        }
        if self.is_loaded(name, version) {
            Ok(())
        } else {
            Err(self.not_loaded(name, version))
        }
    }

    /// Returns whether the change with this number may still get the version that it needs.
    fn is_pending(&self, name: &str, version: u64, number: u64) -> bool {
        let catalogue = self.shared.catalogue();
        let versions = catalogue.get(name);
        versions
            .is_some_and(|versions| versions.is_last_change(number) && versions.is_pending(version))
    }

    fn not_loaded(&self, name: &str, version: u64) -> AdminError {
        let reports = self.models().into_iter();
        let report = reports
            .filter(|report| report.name == name)
            .find(|report| report.version == version);
        let name = name.to_owned();
        match report.map(|report| report.rejection) {
            Some(Some(rejection)) => AdminError::Rejected {
                name,
                version,
                rejection,
            },
            // It was not loaded, because a later change does not need it.
            Some(None) => AdminError::Superseded { name },
            None => AdminError::UnknownVersion { name, version },
        }
    }

    fn is_loaded(&self, name: &str, version: u64) -> bool {
        self.shared
            .catalogue()
            .get(name)
            .is_some_and(|versions| versions.is_loaded(version))
    }

    /// Scans the model folder if the name is unknown.
    async fn find(&self, name: &str) -> Result<(), AdminError> {
        let known = || self.shared.catalogue().get(name).is_some();
        if !known() {
            self.scan().await?;
        }
        if known() {
            Ok(())
        } else {
            Err(AdminError::UnknownModel {
                name: name.to_owned(),
            })
        }
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
    fn save(self, shared: &Shared) -> Result<(), AdminError> {
        // This lock comes first, because it may take long, and every scan needs the other one.
        let lock = PolicyLock::acquire(&shared.folder)?;
        // The catalogue follows the file in the order of its changes.
        let _published = shared.lock_policies();
        if shared.is_stopping() {
            return Err(AdminError::Stopping);
        }
        let stable = self.stable(&shared.catalogue())?;
        let policies = Policies::change(&lock, &self.name, |before| {
            self.change.policy(&self.name, before, self.needed, stable)
        })?;
        shared.change(|catalogue| catalogue.set_policies(policies));
        Ok(())
    }

    /// Returns the stable version, unless a later change superseded this one.
    fn stable(&self, catalogue: &Catalogue) -> Result<Option<u64>, AdminError> {
        let name = self.name.clone();
        match catalogue.get(&name) {
            None => Err(AdminError::UnknownModel { name }),
            Some(versions) if versions.is_last_change(self.number) => Ok(versions.stable()),
            Some(_) => Err(AdminError::Superseded { name }),
        }
    }
}
