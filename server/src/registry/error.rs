use super::policy::PolicyError;
use crate::{model::Rejection, refusal::refusals};

/// Why the registry could not be opened: what is wrong, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RegistryError(pub(super) String);

/// Why a scan of the model folder failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScanError {
    /// The folder cannot be read.
    #[error("{0}")]
    Folder(String),
    /// The policies cannot be read; the previous ones stay in force.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}

refusals! {
    /// Why an admin call failed.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum AdminError {
        #[error("the model folder has no model `{0}`")]
        UnknownModel(name: String) => MODEL_NOT_FOUND,
        #[error("the model folder has no version {1} of `{0}`")]
        UnknownVersion(name: String, version: u64) => MODEL_NOT_FOUND,
        #[error("version {1} of `{0}` was rejected: {2}")]
        Rejected(name: String, version: u64, rejection: Rejection) => MODEL_REJECTED,
        #[error("`{0}` has no older version that could serve")]
        NoOlderVersion(name: String) => NO_OLDER_VERSION,
        #[error(
            "version {1} of `{0}` serves every graph already; pin another version before you make this one the canary"
        )]
        ServesAlready(name: String, version: u64) => SERVES_ALREADY.at("version"),
        #[error("no version of `{0}` serves, so there cannot be a canary")]
        NothingServes(name: String) => NOTHING_SERVES,
        #[error("this change of `{0}` was not made: a later change superseded it")]
        Superseded(name: String) => OVERTAKEN,
        #[error(transparent)]
        Policy(#[from] error: PolicyError) => POLICY_NOT_KEPT,
        #[error(transparent)]
        Scan(#[from] error: ScanError) => match error {
            ScanError::Policy(_) => POLICY_NOT_KEPT,
            ScanError::Folder(_) => MODELS_UNREADABLE,
        },
        #[error("the server failed while it made the change; its log says where")]
        Failed => WORKER_FAILED,
        #[error("the server is stopping")]
        Stopping => STOPPING,
    }
}
