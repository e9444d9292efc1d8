use hlorank_graph::Digest;
use rustix::io::Errno;

use super::{
    ManifestError,
    calibration::CALIBRATION_FILE,
    signature::{SIGNATURE_FILE, SignatureError},
};
use crate::runtime::RuntimeError;

/// The reason why an artifact was refused before it was run.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    File {
        /// The file.
        file: String,
        /// The reason.
        source: std::io::Error,
    },
    /// A file is too large.
    #[error("{file} has {found} bytes, at most {limit} are allowed")]
    FileTooLarge {
        /// The file.
        file: String,
        /// Its size.
        found: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// A path leads out of the version's folder.
    #[error("{file} is outside the folder of the version; give plain names of files in it")]
    OutsideFolder {
        /// The path in the manifest.
        file: String,
    },
    /// The manifest was refused.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The calibration was refused.
    #[error("{CALIBRATION_FILE} cannot be used: {0}")]
    Calibration(String),
    /// No key has signed the version.
    #[error(
        "{SIGNATURE_FILE}: {0}; --models-key accepts only versions that `model_signing sign key` has signed with one of its keys"
    )]
    Signature(#[from] SignatureError),
    /// The folder and the manifest disagree.
    #[error("manifest.json names {named}, but is in {folder}")]
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
    /// The digest of a file is not the one in the manifest.
    #[error("{file} has SHA-256 {found}, manifest.json says {expected}")]
    Digest {
        /// The file.
        file: String,
        /// Digest of the file.
        found: Digest,
        /// Digest in the manifest.
        expected: String,
    },
    /// A file is not a serialized ONNX model.
    #[error("{file} is no ONNX model: {detail}")]
    Malformed {
        /// The file.
        file: &'static str,
        /// The error of the reader.
        detail: String,
    },
    /// The weights are in another file.
    #[error(
        "{file}: tensor `{tensor}` is kept in another file, `{location}`; export the model as one file"
    )]
    ExternalData {
        /// The file.
        file: &'static str,
        /// Name of the tensor.
        tensor: String,
        /// The location that the model gives.
        location: String,
    },
    /// An operator is not one of ONNX's own.
    #[error(
        "{file} uses operator `{operator}` of domain `{domain}`; only ONNX's own operators are run"
    )]
    CustomOperator {
        /// The file.
        file: &'static str,
        /// The operator.
        operator: String,
        /// Domain of the operator.
        domain: String,
    },
    /// A weight is not a number.
    #[error("{file}: tensor `{tensor}` holds NaN")]
    NotANumber {
        /// The file.
        file: &'static str,
        /// Name of the tensor.
        tensor: String,
    },
    /// The inputs or outputs have other names than those of the contract.
    #[error("{file} has {what} {found}, expected {expected}")]
    Names {
        /// The file.
        file: &'static str,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// The names found.
        found: String,
        /// The value in the contract.
        expected: String,
    },
    /// An input or output has another type than in the contract.
    #[error("{file}: `{name}` is {found}, expected {expected}")]
    Type {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// Its type.
        found: String,
        /// The value in the contract.
        expected: &'static str,
    },
    /// An input or output has another rank than in the contract.
    #[error("{file}: `{name}` has {found} dimensions, expected {expected}")]
    Rank {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// The number of dimensions, or `any number of`.
        found: String,
        /// The value in the contract.
        expected: usize,
    },
    /// A dimension has a fixed size that the contract does not allow.
    #[error("{file}: dimension {dimension} of `{name}` is {found}, expected {expected}")]
    Shape {
        /// The file.
        file: &'static str,
        /// The input or output.
        name: &'static str,
        /// Number of the dimension, from 0.
        dimension: usize,
        /// Its size.
        found: i64,
        /// The value in the contract.
        expected: String,
    },
    /// The memory that a run takes cannot be bounded.
    #[error(
        "{file}: the memory of a run cannot be bounded: {detail}; export a model that can be run on graphs of a few nodes, and \
         whose tensors grow at most with the square of the nodes, edges and configurations"
    )]
    MemoryUnknown {
        /// The file.
        file: &'static str,
        /// What went wrong.
        detail: String,
    },
    /// ONNX Runtime refused a model.
    #[error("{file}: {source}")]
    Session {
        /// The file.
        file: &'static str,
        /// The reason.
        source: RuntimeError,
    },
}

impl ArtifactError {
    /// Whether the error is transient: the process or the machine is short of file descriptors.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let Self::File { source, .. } = self else {
            return false;
        };
        // Other errors are properties of the files, and stay until these change.
        matches!(
            Errno::from_io_error(source),
            Some(Errno::MFILE | Errno::NFILE)
        )
    }

    /// The reason in `UPPER_SNAKE_CASE`, which is stable.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::File { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                "FILE_MISSING"
            }
            Self::File { .. } => "FILE_UNREADABLE",
            Self::FileTooLarge { .. } => "FILE_TOO_LARGE",
            Self::Calibration(_) => "CALIBRATION_INVALID",
            Self::Signature(_) => "SIGNATURE_INVALID",
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
            Self::MemoryUnknown { .. } => "MEMORY_UNKNOWN",
            Self::Session { .. } => "SESSION_FAILED",
        }
    }
}
