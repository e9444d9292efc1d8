use hlorank_graph::Task;

use super::{policy_error::PolicyError, selection::SelectError};

/// Why the registry could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The folder cannot be read.
    #[error(
        "cannot read the model folder `{path}`: {source}; start the server in a checkout of hlorank, which has the \
         folder models/registry, or set --models or HLORANK_MODELS to a folder with NAME/VERSION/manifest.json"
    )]
    Folder {
        /// The folder.
        path: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The policies cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A default model ranks configurations of another task.
    #[error("--default-{task}-model: {source}")]
    WrongDefault {
        /// The task that it should rank.
        task: Task,
        /// The task that it ranks.
        source: SelectError,
    },
    /// A default model could not be loaded.
    #[error(
        "no version of model `{name}`, the default for {task} configurations, could be loaded from `{path}`{reason}; \
         set --models or HLORANK_MODELS to a folder that contains it, restore models/registry, run `make train`, or name another model with --default-{task}-model"
    )]
    MissingDefault {
        /// The model.
        name: String,
        /// Its task.
        task: Task,
        /// The folder.
        path: String,
        /// Why its versions were rejected; empty if there are none.
        reason: String,
    },
    /// The folder has no model that could be loaded.
    #[error(
        "no model could be loaded from `{path}`{reason}; set --models or HLORANK_MODELS to a folder with \
         NAME/VERSION/manifest.json, such as models/registry"
    )]
    NoModel {
        /// The folder.
        path: String,
        /// Why versions were rejected; empty if there are none.
        reason: String,
    },
    /// The threads that load and check models could not be started.
    #[error("cannot start the threads that load models: {0}")]
    Thread(std::io::Error),
}

/// Why a scan of the model folder failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ScanError {
    /// The folder cannot be read.
    #[error("cannot read the model folder `{path}`: {detail}")]
    Folder {
        /// The folder.
        path: String,
        /// The cause.
        detail: String,
    },
    /// The policies cannot be read; the previous ones stay in force.
    #[error(transparent)]
    Policy(#[from] PolicyError),
}
