use std::sync::Arc;

use tokio::{sync::oneshot, task::spawn_blocking};

use super::{
    catalogue::Catalogue,
    error::ScanError,
    handle::Registry,
    policy::{CanarySplit, Policies, Policy},
    policy_error::PolicyError,
    policy_lock::PolicyLock,
    versions::Versions,
};
use crate::model::Rejection;

/// Why an admin call failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AdminError {
    /// The model folder has no such model.
    #[error("the model folder has no model `{name}`")]
    UnknownModel {
        /// The requested name.
        name: String,
    },
    /// The model has no such version.
    #[error("the model folder has no version {version} of `{name}`")]
    UnknownVersion {
        /// The model.
        name: String,
        /// The requested version.
        version: u64,
    },
    /// The version was rejected by a check.
    #[error("version {version} of `{name}` was rejected: {rejection}")]
    Rejected {
        /// The model.
        name: String,
        /// The requested version.
        version: u64,
        /// The failed check.
        rejection: Rejection,
    },
    /// There is no version to roll back to.
    #[error("`{name}` has no older version that could serve")]
    NoOlderVersion {
        /// The model.
        name: String,
    },
    /// The requested canary is the stable version.
    #[error(
        "version {version} of `{name}` serves every graph already; pin another version before you make this one the canary"
    )]
    ServesAlready {
        /// The model.
        name: String,
        /// The requested version.
        version: u64,
    },
    /// There is no stable version beside which a canary could serve.
    #[error("no version of `{name}` serves, so there cannot be a canary")]
    NothingServes {
        /// The model.
        name: String,
    },
    /// A later change of the same model superseded this one.
    #[error("this change of `{name}` was not made: a later change superseded it")]
    Superseded {
        /// The model.
        name: String,
    },
    /// The policy could not be saved, so it was not changed.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The model folder could not be read.
    #[error(transparent)]
    Scan(#[from] ScanError),
    /// The change panicked.
    #[error("the server failed while it made the change; its log says where")]
    Failed,
    /// The server is stopping.
    #[error("the server is stopping")]
    Stopping,
}

impl Registry {
    /// Scans the model folder and retries rejected versions. Returns when that is done.
    pub async fn reload(&self) -> Result<(), AdminError> {
        self.shared.change(Catalogue::retry_rejected);
        self.scan().await
    }

    /// Makes a version serve even if there are newer ones, now and after a restart. Loads and checks it first if it is
    /// not loaded. If it is the canary, the canary ends.
    pub async fn pin(&self, name: &str, version: u64) -> Result<(), AdminError> {
        let pin = move |policy: Policy, _| {
            let canary = policy.canary.filter(|split| split.version != version);
            Ok(Policy {
                pinned: Some(version),
                canary,
            })
        };
        self.change(name, Some(version), pin).await
    }

    /// Makes the newest valid version serve every graph.
    pub async fn unpin(&self, name: &str) -> Result<(), AdminError> {
        self.change(name, None, |_, _| Ok(Policy::default()))
            .await?;
        self.scan().await
    }

    /// Pins the previously stable version, or else the next older one. Ends a canary.
    pub async fn rollback(&self, name: &str) -> Result<(), AdminError> {
        self.find(name).await?;
        let target = self
            .shared
            .catalogue()
            .get(name)
            .and_then(Versions::rollback_target);
        let version = target.ok_or_else(|| AdminError::NoOlderVersion {
            name: name.to_owned(),
        })?;
        let policy = Policy {
            pinned: Some(version),
            canary: None,
        };
        self.change(name, Some(version), move |_, _| Ok(policy))
            .await
    }

    /// Makes a second version serve a share of the graphs, and pins the stable version. Loads and checks the canary
    /// first if it is not loaded.
    pub async fn set_canary(&self, name: &str, split: CanarySplit) -> Result<(), AdminError> {
        self.find(name).await?;
        let (owned, stable) = (
            name.to_owned(),
            self.shared.catalogue().get(name).and_then(Versions::stable),
        );
        let with_canary = move |stable: Option<u64>| match stable {
            None => Err(AdminError::NothingServes {
                name: owned.clone(),
            }),
            Some(version) if version == split.version => Err(AdminError::ServesAlready {
                name: owned.clone(),
                version,
            }),
            Some(_) => Ok(Policy {
                pinned: stable,
                canary: Some(split),
            }),
        };
        // Checked before the canary is loaded, and again with the version that is stable after that.
        with_canary.clone()(stable)?;
        self.change(name, Some(split.version), move |_, stable| {
            with_canary(stable)
        })
        .await
    }

    /// Makes the stable version serve every graph. It stays pinned.
    pub async fn end_canary(&self, name: &str) -> Result<(), AdminError> {
        self.change(name, None, |policy, _| {
            Ok(Policy {
                canary: None,
                ..policy
            })
        })
        .await
    }

    /// Loads the version that a change needs, and replaces the policy. `policy` computes the new policy from the previous
    /// one and the stable version. A change that a later one supersedes is not made.
    async fn change(
        &self,
        name: &str,
        needed: Option<u64>,
        policy: impl Fn(Policy, Option<u64>) -> Result<Policy, AdminError> + Send + 'static,
    ) -> Result<(), AdminError> {
        self.find(name).await?;
        let begin = |catalogue: &mut Catalogue| Some(catalogue.get_mut(name)?.begin_change(needed));
        let unknown = || AdminError::UnknownModel {
            name: name.to_owned(),
        };
        let number = self.shared.change(begin).ok_or_else(unknown)?;
        let change = async {
            if let Some(version) = needed {
                self.wait_until_loaded(name, version, number).await?;
            }
            self.set_policy(name, number, policy).await
        };
        let made = change.await;
        self.shared
            .with_model(name, |versions| versions.end_change(number));
        self.shared.wake();
        made
    }

    /// Waits until a version is loaded that the change with this number needs.
    async fn wait_until_loaded(
        &self,
        name: &str,
        version: u64,
        number: u64,
    ) -> Result<(), AdminError> {
        let mut changes = self.changes();
        if !self.is_loaded(name, version) {
            self.scan().await?;
        }
        let is_pending = || {
            let catalogue = self.shared.catalogue();
            let versions = catalogue.get(name);
            versions.is_some_and(|versions| {
                versions.is_last_change(number) && versions.is_pending(version)
            })
        };
        while is_pending() {
            changes.changed().await.map_err(|_| AdminError::Stopping)?;
            if self.shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
        }
        if self.is_loaded(name, version) {
            return Ok(());
        }
        let name = name.to_owned();
        let report = self
            .models()
            .into_iter()
            .find(|report| (&report.name, report.version) == (&name, version));
        Err(match report.map(|report| report.rejection) {
            Some(Some(rejection)) => AdminError::Rejected {
                name,
                version,
                rejection,
            },
            // It was not loaded, because a later change does not need it.
            Some(None) => AdminError::Superseded { name },
            None => AdminError::UnknownVersion { name, version },
        })
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

    /// Saves the policy to disk, then follows it.
    async fn set_policy(
        &self,
        name: &str,
        number: u64,
        policy: impl Fn(Policy, Option<u64>) -> Result<Policy, AdminError> + Send + 'static,
    ) -> Result<(), AdminError> {
        let (shared, name) = (Arc::clone(&self.shared), name.to_owned());
        let set = spawn_blocking(move || {
            let lock = PolicyLock::acquire(&shared.folder)?;
            let _published = shared.lock_policies();
            if shared.is_stopping() {
                return Err(AdminError::Stopping);
            }
            let stable = shared.catalogue().get(&name).map(|versions| {
                if versions.is_last_change(number) {
                    Ok(versions.stable())
                } else {
                    Err(())
                }
            });
            let stable = match stable {
                None => return Err(AdminError::UnknownModel { name }),
                Some(Err(())) => return Err(AdminError::Superseded { name }),
                Some(Ok(stable)) => stable,
            };
            let policies = Policies::change(&lock, &name, |before| policy(before, stable))?;
            shared.change(|catalogue| catalogue.set_policies(policies));
            Ok(())
        });
        set.await.unwrap_or(Err(AdminError::Failed))
    }
}
