use hlorank_graph::{Digest, shortened};
use serde_json::Value;

/// Name of the manifest. An exporter writes it last: a version without one does not exist yet.
pub const MANIFEST_FILE: &str = "manifest.json";

/// Newest manifest format that this server reads.
pub(super) const SCHEMA: u32 = 1;

/// The reason why a manifest was refused.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ManifestError {
    /// The file is not the expected JSON.
    #[error("{MANIFEST_FILE} cannot be read: {0}")]
    Unreadable(String),
    /// A newer exporter wrote the manifest.
    #[error(
        "{MANIFEST_FILE} has schema {found}, this server reads up to {SCHEMA}; update the server"
    )]
    NewerSchema {
        /// Format of the manifest.
        found: u32,
    },
    /// The model was trained with a feature set that this server does not have, or that is not the one it names.
    #[error(
        "{MANIFEST_FILE}: `feature_digest` is `{found}`, expected `{expected}`, the digest of the featurization of this \
         server, or of the manifest's own feature_set"
    )]
    FeatureDigest {
        /// Digest in the manifest.
        found: String,
        /// Digest of the feature set.
        expected: Digest,
    },
    /// A field makes no sense or does not fit this server.
    #[error("{MANIFEST_FILE}: `{field}` is `{found}`, expected {expected}")]
    Field {
        /// The field.
        field: &'static str,
        /// Its value.
        found: String,
        /// What it should be.
        expected: String,
    },
}

impl ManifestError {
    /// The reason in `UPPER_SNAKE_CASE`, which is stable.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "MANIFEST_UNREADABLE",
            Self::NewerSchema { .. } => "MANIFEST_NEWER",
            Self::FeatureDigest { .. } => "FEATURE_DIGEST_MISMATCH",
            Self::Field { .. } => "MANIFEST_INVALID",
        }
    }
}

/// Refuses a field with [`ManifestError::Field`] unless `holds`.
pub(super) fn check_field(
    holds: bool,
    field: &'static str,
    found: &impl ToString,
    expected: &str,
) -> Result<(), ManifestError> {
    require_field(holds.then_some(()), field, found, expected)
}

/// Refuses a field that only models of another kind have.
pub(super) fn check_absent(
    found: Option<&Value>,
    field: &'static str,
    expected: &str,
) -> Result<(), ManifestError> {
    found.map_or(Ok(()), |found| check_field(false, field, found, expected))
}

/// Returns what a field means, or refuses it with [`ManifestError::Field`].
pub(super) fn require_field<T>(
    meaning: Option<T>,
    field: &'static str,
    found: &impl ToString,
    expected: &str,
) -> Result<T, ManifestError> {
    let refused = || ManifestError::Field {
        field,
        found: shortened(&found.to_string()),
        expected: expected.to_owned(),
    };
    meaning.ok_or_else(refused)
}

/// Converts an error of serde, whose message quotes the file.
#[expect(
    clippy::needless_pass_by_value,
    reason = "what a Result's error is mapped with"
)]
pub(super) fn unreadable(error: serde_json::Error) -> ManifestError {
    let message = error.to_string();
    // serde puts the place at the end of its message, where a long quotation would hide it.
    let start = shortened(&message);
    if start == message {
        return ManifestError::Unreadable(message);
    }
    ManifestError::Unreadable(format!(
        "{start} at line {} column {}",
        error.line(),
        error.column()
    ))
}
