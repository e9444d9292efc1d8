use std::sync::Arc;

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    catalogue::Catalogue, error::AdminError, handle::Registry, policy::Policies,
    policy_change::PolicyChange, policy_file::PolicyLock, shared::Shared,
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

    async fn make(&self, pending: PendingChange) -> Result<(), AdminError> {
        if let Some(version) = pending.needed {
            self.wait_until_loaded(&pending, version).await?;
        }
        let shared = Arc::clone(&self.shared);
        let saved = spawn_blocking(move || pending.save(&shared)).await;
        saved.unwrap_or(Err(AdminError::Failed))
    }

    /// Waits until a version is loaded that a change needs.
    async fn wait_until_loaded(
        &self,
        pending: &PendingChange,
        version: u64,
    ) -> Result<(), AdminError> {
        let name = &pending.name;
        let is_loaded = || {
            let catalogue = self.shared.catalogue();
            let versions = catalogue.get(name);
            versions.is_some_and(|versions| versions.is_loaded(version))
        };
        // The change may still get the version that it needs.
        let is_pending = || {
            let catalogue = self.shared.catalogue();
            catalogue.get(name).is_some_and(|versions| {
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
    fn save(self, shared: &Shared) -> Result<(), AdminError> {
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
