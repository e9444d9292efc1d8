use super::{error::ScanError, policy_error::PolicyError};
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
