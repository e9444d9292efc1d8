use std::sync::{Arc, PoisonError};

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{CanarySplit, Policy, PolicyError, Registry, Rejection, policy::Policies, versions::Versions};

/// Why an admin call changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdminError {
    /// No such name.
    #[error("the model folder has no model `{name}`")]
    UnknownModel {
        /// What was asked for.
        name: String,
    },
    /// No such version.
    #[error("the model folder has no version {version} of `{name}`")]
    UnknownVersion {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
    },
    /// The version was tried and rejected.
    #[error("version {version} of `{name}` was rejected: {rejection}")]
    Rejected {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
        /// Why.
        rejection: Rejection,
    },
    /// There is nothing to go back to.
    #[error("`{name}` has no older version that could serve")]
    NoOlderVersion {
        /// The model.
        name: String,
    },
    /// A canary that is the stable version.
    #[error("version {version} of `{name}` serves already; a canary is another version")]
    ServesAlready {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
    },
    /// The policy could not be kept, so nothing was changed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}

impl Registry {
    /// Looks at the model folder at once, and tries rejected versions again; returns once that is done.
    pub async fn reload(&self) -> Result<(), AdminError> {
        self.shared.change(super::catalogue::Catalogue::retry_rejected);
        self.look().await
    }

    /// Has a version serve whatever newer ones there are, now and after a restart. Loads and checks it first where it
    /// is not loaded. A canary of this version ends: it serves every graph.
    pub async fn pin(&self, name: &str, version: u64) -> Result<(), AdminError> {
        let keep = move |policy: Policy| Policy {
            pinned: Some(version),
            canary: policy.canary.filter(|split| split.version != version),
        };
        self.with_loaded(name, version, keep).await
    }

    /// Has the newest valid version serve again, for every graph.
    pub async fn unpin(&self, name: &str) -> Result<(), AdminError> {
        self.known(name).await?;
        self.set_policy(name, |_| Policy::default()).await?;
        self.look().await
    }

    /// Pins the version that served before this one, or the next older one; ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<(), AdminError> {
        self.known(name).await?;
        let target = self.shared.catalogue().get(name).and_then(Versions::rollback_target);
        let version = target.ok_or_else(|| AdminError::NoOlderVersion { name: name.to_owned() })?;
        self.with_loaded(name, version, move |_| Policy { pinned: Some(version), canary: None }).await
    }

    /// Has a second version serve a part of the graphs beside the stable one, which is pinned. Loads and checks it
    /// first where it is not loaded.
    pub async fn set_canary(&self, name: &str, split: CanarySplit) -> Result<(), AdminError> {
        self.known(name).await?;
        let stable = self.shared.catalogue().get(name).and_then(Versions::stable);
        if stable == Some(split.version) {
            return Err(AdminError::ServesAlready { name: name.to_owned(), version: split.version });
        }
        let policy = Policy { pinned: stable, canary: Some(split) };
        self.with_loaded(name, split.version, move |_| policy).await
    }

    /// Has the stable version serve every graph; it stays pinned.
    pub async fn end_canary(&self, name: &str) -> Result<(), AdminError> {
        self.known(name).await?;
        self.set_policy(name, |policy| Policy { canary: None, ..policy }).await
    }

    /// Loads a version, sets the policy, and lets that decide from then on.
    async fn with_loaded(
        &self,
        name: &str,
        version: u64,
        policy: impl FnOnce(Policy) -> Policy + Send + 'static,
    ) -> Result<(), AdminError> {
        self.known(name).await?;
        self.shared.with_model(name, |versions| versions.ask_for(version));
        let set = async {
            self.wait_until_loaded(name, version).await?;
            self.set_policy(name, policy).await
        };
        let set = set.await;
        self.shared.with_model(name, |versions| versions.no_longer_ask_for(version));
        self.shared.wake();
        set
    }

    async fn wait_until_loaded(&self, name: &str, version: u64) -> Result<(), AdminError> {
        if self.is_loaded(name, version) {
            return Ok(());
        }
        self.shared.with_model(name, Versions::retry_rejected);
        self.look().await?;
        if self.is_loaded(name, version) {
            return Ok(());
        }
        let name = name.to_owned();
        let report =
            self.models().into_iter().find(|report| (&report.name, report.version) == (&name, version));
        Err(match report.and_then(|report| report.rejection) {
            Some(rejection) => AdminError::Rejected { name, version, rejection },
            None => AdminError::UnknownVersion { name, version },
        })
    }

    fn is_loaded(&self, name: &str, version: u64) -> bool {
        self.shared.catalogue().get(name).is_some_and(|versions| versions.is_loaded(version))
    }

    /// Looks for a name that is not known yet.
    async fn known(&self, name: &str) -> Result<(), AdminError> {
        let known = || self.shared.catalogue().get(name).is_some();
        if !known() {
            self.look().await?;
        }
        if known() { Ok(()) } else { Err(AdminError::UnknownModel { name: name.to_owned() }) }
    }

    /// Has the loader look, and waits until it has done everything there was to do.
    async fn look(&self) -> Result<(), AdminError> {
        let (done, waited) = oneshot::channel();
        self.shared.catalogue().waiting.push(done);
        self.shared.wake();
        waited.await.map_err(|_| AdminError::Stopping)
    }

    /// Keeps the policy on disk, then follows it.
    async fn set_policy(
        &self,
        name: &str,
        policy: impl FnOnce(Policy) -> Policy + Send + 'static,
    ) -> Result<(), AdminError> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let set = spawn_blocking(move || {
            let _turn = shared.policy_turn.lock().unwrap_or_else(PoisonError::into_inner);
            let policies = Policies::change(&shared.folder, &name, policy)?;
            shared.change(|catalogue| catalogue.set_policies(policies));
            Ok(())
        });
        set.await.map_err(|_| AdminError::Stopping)?
    }
}
