use std::sync::Arc;

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    CanarySplit, LookError, Policy, PolicyError, Registry, catalogue::Catalogue, policy::Policies,
    versions::Versions,
};
use crate::model::Rejection;

/// Why an admin call was not answered as asked.
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
    #[error(
        "version {version} of `{name}` serves every graph already; pin another version first, then try this one on some"
    )]
    ServesAlready {
        /// The model.
        name: String,
        /// What was asked for.
        version: u64,
    },
    /// A canary beside nothing.
    #[error("no version of `{name}` serves, so that there is nothing to try another one beside")]
    NothingServes {
        /// The model.
        name: String,
    },
    /// A later change of the same model was asked for meanwhile.
    #[error("a later change of `{name}` took the place of this one, which was not made")]
    Overtaken {
        /// The model.
        name: String,
    },
    /// The policy could not be kept, so it was not changed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The model folder was not read, or not all of it.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The change panicked.
    #[error("the server failed at the change; its log tells where")]
    Failed,
    /// The server stops.
    #[error("the server is stopping")]
    Stopping,
}

impl Registry {
    /// Looks at the model folder at once, and tries rejected versions again; returns once that is done.
    pub async fn reload(&self) -> Result<(), AdminError> {
        self.shared.change(Catalogue::retry_rejected);
        self.look().await
    }

    /// Has a version serve whatever newer ones there are, now and after a restart. Loads and checks it first where it
    /// is not loaded. A canary of this version ends: it serves every graph.
    pub async fn pin(&self, name: &str, version: u64) -> Result<(), AdminError> {
        let keep = move |policy: Policy, _| {
            let canary = policy.canary.filter(|split| split.version != version);
            Ok(Policy { pinned: Some(version), canary })
        };
        self.change(name, Some(version), keep).await
    }

    /// Has the newest valid version serve again, for every graph.
    pub async fn unpin(&self, name: &str) -> Result<(), AdminError> {
        self.change(name, None, |_, _| Ok(Policy::default())).await?;
        self.look().await
    }

    /// Pins the version that served before this one, or the next older one; ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<(), AdminError> {
        self.known(name).await?;
        let target = self.shared.catalogue().get(name).and_then(Versions::rollback_target);
        let version = target.ok_or_else(|| AdminError::NoOlderVersion { name: name.to_owned() })?;
        let policy = Policy { pinned: Some(version), canary: None };
        self.change(name, Some(version), move |_, _| Ok(policy)).await
    }

    /// Has a second version serve a part of the graphs beside the stable one, which is pinned. Loads and checks it
    /// first where it is not loaded.
    pub async fn set_canary(&self, name: &str, split: CanarySplit) -> Result<(), AdminError> {
        self.known(name).await?;
        let (owned, stable) = (name.to_owned(), self.shared.catalogue().get(name).and_then(Versions::stable));
        let beside = move |stable: Option<u64>| match stable {
            None => Err(AdminError::NothingServes { name: owned }),
            Some(version) if version == split.version => {
                Err(AdminError::ServesAlready { name: owned, version })
            }
            Some(_) => Ok(Policy { pinned: stable, canary: Some(split) }),
        };
        // Before it is loaded, and again with what serves then.
        beside.clone()(stable)?;
        self.change(name, Some(split.version), move |_, stable| beside(stable)).await
    }

    /// Has the stable version serve every graph; it stays pinned.
    pub async fn end_canary(&self, name: &str) -> Result<(), AdminError> {
        self.change(name, None, |policy, _| Ok(Policy { canary: None, ..policy })).await
    }

    /// Loads the version that a change needs, sets the policy, which is made of the one before and the stable version,
    /// and lets that decide from then on. A change that a later one overtakes is not made.
    async fn change(
        &self,
        name: &str,
        needed: Option<u64>,
        policy: impl FnOnce(Policy, Option<u64>) -> Result<Policy, AdminError> + Send + 'static,
    ) -> Result<(), AdminError> {
        self.known(name).await?;
        let begin = |catalogue: &mut Catalogue| Some(catalogue.get_mut(name)?.begin_change(needed));
        let unknown = || AdminError::UnknownModel { name: name.to_owned() };
        let number = self.shared.change(begin).ok_or_else(unknown)?;
        let made = async {
            if let Some(version) = needed {
                self.wait_until_loaded(name, version).await?;
            }
            self.set_policy(name, number, policy).await
        };
        let made = made.await;
        self.shared.with_model(name, |versions| versions.end_change(number));
        self.shared.wake();
        made
    }

    async fn wait_until_loaded(&self, name: &str, version: u64) -> Result<(), AdminError> {
        if self.is_loaded(name, version) {
            return Ok(());
        }
        self.look().await?;
        if self.is_loaded(name, version) {
            return Ok(());
        }
        let name = name.to_owned();
        let report =
            self.models().into_iter().find(|report| (&report.name, report.version) == (&name, version));
        Err(match report.map(|report| report.rejection) {
            Some(Some(rejection)) => AdminError::Rejected { name, version, rejection },
            // It is there, and nobody waits for it any more.
            Some(None) => AdminError::Overtaken { name },
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

    /// Keeps the policy on disk, then follows it.
    async fn set_policy(
        &self,
        name: &str,
        number: u64,
        policy: impl FnOnce(Policy, Option<u64>) -> Result<Policy, AdminError> + Send + 'static,
    ) -> Result<(), AdminError> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let set = spawn_blocking(move || {
            let _turn = shared.policy_turn();
            if shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
            let stable = shared.catalogue().get(&name).map(|versions| {
                if versions.is_last_change(number) { Ok(versions.stable()) } else { Err(()) }
            });
            let stable = match stable {
                None => return Err(AdminError::UnknownModel { name }),
                Some(Err(())) => return Err(AdminError::Overtaken { name }),
                Some(Ok(stable)) => stable,
            };
            let policies = Policies::change(&shared.folder, &name, |before| policy(before, stable))?;
            shared.change(|catalogue| catalogue.set_policies(policies));
            Ok(())
        });
        set.await.unwrap_or(Err(AdminError::Failed))
    }
}
