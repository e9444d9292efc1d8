use super::{error::ScanError, policy_error::PolicyError};
use crate::{model::Rejection, refusal::refusals};

refusals! {
    /// Why an admin call failed.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum AdminError {
        #[error("the model folder has no model `{name}`")]
        UnknownModel { name: String } => ModelNotFound,
        #[error("the model folder has no version {version} of `{name}`")]
        UnknownVersion { name: String, version: u64 } => ModelNotFound,
        #[error("version {version} of `{name}` was rejected: {rejection}")]
        Rejected { name: String, version: u64, rejection: Rejection } => ModelRejected,
        #[error("`{name}` has no older version that could serve")]
        NoOlderVersion { name: String } => NoOlderVersion,
        #[error(
            "version {version} of `{name}` serves every graph already; pin another version before you make this one the \
             canary"
        )]
        ServesAlready { name: String, version: u64 } => ServesAlready.at("version"),
        #[error("no version of `{name}` serves, so there cannot be a canary")]
        NothingServes { name: String } => NothingServes,
        #[error("this change of `{name}` was not made: a later change superseded it")]
        Superseded { name: String } => Overtaken,
        #[error(transparent)]
        Policy(#[from] error: PolicyError) => PolicyNotKept,
        #[error(transparent)]
        Scan(#[from] error: ScanError) => match error {
            ScanError::Policy(_) => PolicyNotKept,
            ScanError::Folder { .. } => ModelsUnreadable,
        },
        #[error("the server failed while it made the change; its log says where")]
        Failed => WorkerFailed,
        #[error("the server is stopping")]
        Stopping => Stopping,
    }
}
