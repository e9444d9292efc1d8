use std::{io, path::Path, time::Duration};

/// Why policies could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum PolicyError {
    /// The file cannot be read.
    #[error("cannot read `{path}`: {detail}")]
    Read {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
    /// The file is not the expected JSON.
    #[error("`{path}` is not a valid policy: {detail}; an example is {EXAMPLE}")]
    Malformed {
        /// The file.
        path: String,
        /// What is wrong.
        detail: String,
    },
    /// The file cannot be written.
    #[error(
        "cannot write `{path}`: {detail}; the server saves pins and canaries there, so it needs write permission"
    )]
    Write {
        /// The file.
        path: String,
        /// The cause.
        detail: String,
    },
    /// Another process holds the lock.
    #[error(
        "{holder} has held the lock `{path}` for {waited:?}, so the policy was not changed; end that process if it \
         hangs, and try again"
    )]
    Locked {
        /// The lock.
        path: String,
        /// The process that holds it.
        holder: String,
        /// How long this change has waited.
        waited: Duration,
    },
    /// Something that does not take the lock changes the file again and again.
    #[error(
        "`{path}` was changed while this change was written, so the policy was not changed; try again"
    )]
    Changing {
        /// The file.
        path: String,
    },
}

/// Name of the file in the model folder.
pub(super) const FILE_NAME: &str = "policy.json";

const EXAMPLE: &str = r#"{"NAME": {"pinned": 2, "canary": {"version": 3, "percent": 10}}}"#;

impl PolicyError {
    pub(super) fn unwritable(folder: &Path, error: &io::Error) -> Self {
        Self::Write {
            path: file_name(folder),
            detail: error.to_string(),
        }
    }
}

/// Returns the path of the file as errors show it.
pub(super) fn file_name(folder: &Path) -> String {
    folder.join(FILE_NAME).display().to_string()
}
