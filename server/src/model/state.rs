use std::{fmt, io};

use rustix::io::Errno;

/// The life-cycle state of a model version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelState {
    /// The version is on disk and has not been loaded yet.
    Discovered,
    /// The version is being read and checked.
    Validating,
    /// The version passed its checks with one worker's session; the sessions of the other workers are being checked, so
    /// that the first request is not slow.
    Warming,
    /// The version answers requests that name no version: it is the stable version or the canary.
    Serving,
    /// The version is loaded and answers only requests that name it, or is finishing its last requests.
    Retained,
    /// A check failed, or a run did not end while the version served. The version is tried again when its files change, or on `Reload`.
    Rejected,
    /// The version was loaded before, and its memory has been freed.
    Unloaded,
}

impl ModelState {
    /// Every state, in the order of a version's life.
    pub const ALL: [Self; 7] = [
        Self::Discovered,
        Self::Validating,
        Self::Warming,
        Self::Serving,
        Self::Retained,
        Self::Rejected,
        Self::Unloaded,
    ];

    /// The name of the state in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Validating => "validating",
            Self::Warming => "warming",
            Self::Serving => "serving",
            Self::Retained => "retained",
            Self::Rejected => "rejected",
            Self::Unloaded => "unloaded",
        }
    }
}

impl fmt::Display for ModelState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Every reason for which a version can be rejected.
pub const REJECTION_REASONS: [&str; 34] = [
    "CALIBRATION_INVALID",
    "CUSTOM_OPERATOR",
    "DIGEST_MISMATCH",
    "EVALUATION_FAILED",
    "EXTERNAL_DATA",
    "FEATURE_DIGEST_MISMATCH",
    "FILE_MISSING",
    "FILE_OUTSIDE_FOLDER",
    "FILE_TOO_LARGE",
    "FILE_UNLISTED",
    "FILE_UNREADABLE",
    "GOLDEN_EMPTY",
    "GOLDEN_MISMATCH",
    "GOLDEN_ONE_CHUNK",
    "GOLDEN_UNREADABLE",
    "INTERFACE_NAMES",
    "INTERFACE_RANK",
    "INTERFACE_SHAPE",
    "INTERFACE_TYPE",
    "LOAD_TIMEOUT",
    "MANIFEST_INVALID",
    "MANIFEST_NEWER",
    "MANIFEST_UNREADABLE",
    "MEMORY_UNKNOWN",
    "MISPLACED",
    "ONNX_MALFORMED",
    "RUN_ABANDONED",
    "SCORE_NOT_FINITE",
    "SERVER_FAILED",
    "SESSION_FAILED",
    "SIGNATURE_INVALID",
    "TASK_MISMATCH",
    "TOO_SLOW",
    "WEIGHT_NOT_A_NUMBER",
];

/// Why a version was rejected: by a check of its files, or because it failed while it served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {message}")]
pub struct Rejection {
    /// The check that failed, one of [`REJECTION_REASONS`]; stable.
    pub reason: &'static str,
    /// What is wrong, where, and what to do about it.
    pub message: String,
    /// Whether the failure may pass without a change of the files, so that every scan of the folder retries the version.
    pub transient: bool,
}

impl Rejection {
    /// A rejection that stays until the files change.
    pub fn new(reason: &'static str, message: impl Into<String>) -> Self {
        debug_assert!(REJECTION_REASONS.contains(&reason), "{reason}");
        Self {
            reason,
            message: message.into(),
            transient: false,
        }
    }

    /// A file cannot be read.
    pub(super) fn of_file(file: &str, error: &io::Error) -> Self {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "FILE_MISSING",
            _ => "FILE_UNREADABLE",
        };
        // A process or machine that is short of file descriptors may have some later. Other errors
        // are properties of the files.
        let errno = Errno::from_io_error(error);
        Self {
            transient: matches!(errno, Some(Errno::MFILE | Errno::NFILE)),
            ..Self::new(reason, format!("cannot read {file}: {error}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_readme_explains_every_reason() {
        let page = include_str!("../../../docs/model-versions.md");
        let table = page
            .split("| reason | the check |")
            .nth(1)
            .unwrap()
            .split("\n\n")
            .next()
            .unwrap();
        // | reasons | the check |
        let reasons = table.lines().filter_map(|line| line.split('|').nth(1));
        let explained: BTreeSet<&str> = reasons
            .flat_map(|reasons| reasons.split('`').skip(1).step_by(2))
            .collect();
        assert_eq!(explained, BTreeSet::from(REJECTION_REASONS));
    }
}
