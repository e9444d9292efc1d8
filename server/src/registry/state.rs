use std::fmt;

/// Where a version is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModelState {
    /// It is on disk, and nothing asks for it yet.
    Discovered,
    /// It is being read and checked.
    Validating,
    /// It was checked once; the sessions of every worker are, so that its first request is not slow.
    Warming,
    /// It answers requests that do not ask for a version: as the stable version or as the canary.
    Serving,
    /// It is loaded and answers requests that ask for it, or is finishing the last ones.
    Retained,
    /// A check failed; it is tried again when its files change, or on demand.
    Rejected,
    /// It was loaded, and its memory is free again.
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

    /// The word for it, in lower case.
    #[must_use]
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

/// Every reason that a version is rejected for.
pub const REJECTION_REASONS: [&str; 28] = [
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
    "GOLDEN_UNREADABLE",
    "INTERFACE_NAMES",
    "INTERFACE_RANK",
    "INTERFACE_SHAPE",
    "INTERFACE_TYPE",
    "MANIFEST_INVALID",
    "MANIFEST_NEWER",
    "MANIFEST_UNREADABLE",
    "MISPLACED",
    "ONNX_MALFORMED",
    "SCORE_NOT_FINITE",
    "SERVER_FAILED",
    "SESSION_FAILED",
    "TASK_MISMATCH",
    "TOO_SLOW",
    "WEIGHT_NOT_A_NUMBER",
];

/// Why a version does not serve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// What was wrong, in `UPPER_SNAKE_CASE`; stable.
    pub reason: &'static str,
    /// What, where, and what to do.
    pub message: String,
    /// Whether it is not the fault of the files and passes by itself, so that every look tries the version again.
    pub passing: bool,
}

impl fmt::Display for Rejection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.reason, self.message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn reasons_are_those_that_the_readme_explains() {
        let readme = include_str!("../../README.md");
        let section = readme.split("## Models while they are served").nth(1).unwrap();
        let table = section.split("| reason | the check |").nth(1).unwrap().split("\n\n").next().unwrap();
        // | reasons | the check |
        let reasons = table.lines().filter_map(|line| line.split('|').nth(1));
        let explained: BTreeSet<&str> =
            reasons.flat_map(|reasons| reasons.split('`').skip(1).step_by(2)).collect();
        assert_eq!(explained, BTreeSet::from(REJECTION_REASONS));
    }
}
