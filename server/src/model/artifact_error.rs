use hlorank_graph::Digest;
use rustix::io::Errno;

use super::ManifestError;
use crate::runtime::RuntimeError;

/// Why an artifact was refused before it was run.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    File {
        /// The file.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// A file over the limit.
    #[error("{file} has {found} bytes, at most {limit} are read")]
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A path that leads out of the version's folder.
    #[error("{file} is outside the folder of the version; give plain names of files in it")]
    OutsideFolder {
        /// As the manifest has it.
        file: String,
    },
    /// The manifest was refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The folder and the manifest disagree.
    #[error("manifest.json names {named}, but stands in {folder}")]
    Misplaced {
        /// `NAME/VERSION` by the manifest.
        named: String,
        /// `NAME/VERSION` by the folders.
        folder: String,
    },
    /// The manifest does not list a file that is needed.
    #[error("manifest.json lists no digest of {file}")]
    Unlisted {
        /// The file.
        file: &'static str,
    },
    /// A file is not the one that was exported.
    #[error("{file} has SHA-256 {found}, manifest.json says {expected}")]
    Digest {
        /// The file.
        file: String,
        /// Of the file.
        found: Digest,
        /// By the manifest.
        expected: String,
    },
    /// Not a serialized ONNX model.
    #[error("{file} is no ONNX model: {detail}")]
    Malformed {
        /// The file.
        file: &'static str,
        /// What the reader said.
        detail: String,
    },
    /// Weights in another file.
    #[error("{file}: tensor `{tensor}` is kept in another file, `{location}`; export the model as one file")]
    ExternalData {
        /// The file.
        file: &'static str,
        /// Name of the tensor.
        tensor: String,
        /// Where the model says that it is.
        location: String,
    },
    /// An operator that is not ONNX's own.
    #[error("{file} uses operator `{operator}` of domain `{domain}`; only ONNX's own operators are run")]
    CustomOperator {
        /// The file.
        file: &'static str,
        /// The operator.
        operator: String,
        /// Whose it is.
        domain: String,
    },
    /// A weight that is not a number.
    #[error("{file}: tensor `{tensor}` holds NaN")]
    NotANumber {
        /// The file.
        file: &'static str,
        /// Name of the tensor.
        tensor: String,
    },
    /// Inputs or outputs of other names than the contract has.
    #[error("{file} has {what} {found}, expected {expected}")]
    Names {
        /// The file.
        file: &'static str,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// What it has.
        found: String,
        /// What the contract says.
        expected: String,
    },
    /// An input or output of another type than the contract has.
    #[error("{file}: `{name}` is {found}, expected {expected}")]
    Type {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// Its type.
        found: String,
        /// What the contract says.
        expected: &'static str,
    },
    /// An input or output of another rank than the contract has.
    #[error("{file}: `{name}` has {found} dimensions, expected {expected}")]
    Rank {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// How many dimensions it has, or `any number of`.
        found: String,
        /// What the contract says.
        expected: usize,
    },
    /// A size that is fixed where the contract has another, or any.
    #[error("{file}: dimension {dimension} of `{name}` is {found}, expected {expected}")]
    Shape {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// Which dimension, from 0.
        dimension: usize,
        /// Its size.
        found: i64,
        /// What the contract says.
        expected: String,
    },
    /// ONNX Runtime refused a model.
    #[error("{file}: {source}")]
    Session {
        /// The file.
        file: &'static str,
        /// Why.
        source: RuntimeError,
    },
}

impl ArtifactError {
    /// Whether the server, or its machine, is short of descriptors, which says nothing of the files.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        let Self::File { source, .. } = self else { return false };
        matches!(Errno::from_io_error(source), Some(Errno::MFILE | Errno::NFILE))
    }

    /// What was wrong, in `UPPER_SNAKE_CASE`; stable.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => "FILE_MISSING",
            Self::File { .. } => "FILE_UNREADABLE",
            Self::FileTooLarge { .. } => "FILE_TOO_LARGE",
            Self::OutsideFolder { .. } => "FILE_OUTSIDE_FOLDER",
            Self::Manifest(error) => error.reason(),
            Self::Misplaced { .. } => "MISPLACED",
            Self::Unlisted { .. } => "FILE_UNLISTED",
            Self::Digest { .. } => "DIGEST_MISMATCH",
            Self::Malformed { .. } => "ONNX_MALFORMED",
            Self::ExternalData { .. } => "EXTERNAL_DATA",
            Self::CustomOperator { .. } => "CUSTOM_OPERATOR",
            Self::NotANumber { .. } => "WEIGHT_NOT_A_NUMBER",
            Self::Names { .. } => "INTERFACE_NAMES",
            Self::Type { .. } => "INTERFACE_TYPE",
            Self::Rank { .. } => "INTERFACE_RANK",
            Self::Shape { .. } => "INTERFACE_SHAPE",
            Self::Session { .. } => "SESSION_FAILED",
        }
    }
}
