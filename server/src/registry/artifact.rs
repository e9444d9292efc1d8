use std::{fs, path::Path};

use hlorank_graph::Digest;
use sha2::{Digest as _, Sha256};

use super::manifest::{self, Manifest, ManifestError, ModelKind};
use crate::runtime::RuntimeError;

/// Why an artifact was refused.
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
        file: &'static str,
        /// Of the file.
        found: Digest,
        /// By the manifest.
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
    /// Inputs or outputs that are not those of the contract.
    #[error("{file} has {what} {found}, expected {expected}")]
    Interface {
        /// The file.
        file: &'static str,
        /// `inputs` or `outputs`.
        what: &'static str,
        /// What it has.
        found: String,
        /// What the contract says.
        expected: String,
    },
}

/// The bytes of an artifact whose digests hold.
pub(super) struct Artifact {
    pub(super) manifest: Manifest,
    pub(super) manifest_bytes: Vec<u8>,
    pub(super) files: ModelFiles,
}

/// The serialized ONNX models of an artifact.
pub(super) enum ModelFiles {
    Segment { encoder: Vec<u8>, head: Vec<u8> },
    WholeGraph { model: Vec<u8> },
}

pub(super) const ENCODER: &str = "encoder.onnx";
pub(super) const HEAD: &str = "head.onnx";
pub(super) const MODEL: &str = "model.onnx";

impl Artifact {
    /// Reads a version's folder.
    pub(super) fn read(folder: &Path) -> Result<Self, ArtifactError> {
        let manifest_bytes = read(folder, manifest::FILE_NAME)?;
        let manifest = Manifest::read(&manifest_bytes)?;
        check_place(folder, &manifest)?;
        let read = |file| read_checked(folder, &manifest, file);
        let files = match manifest.kind() {
            ModelKind::Segment => ModelFiles::Segment { encoder: read(ENCODER)?, head: read(HEAD)? },
            ModelKind::WholeGraph { .. } => ModelFiles::WholeGraph { model: read(MODEL)? },
        };
        Ok(Self { manifest, manifest_bytes, files })
    }
}

fn read(folder: &Path, file: &str) -> Result<Vec<u8>, ArtifactError> {
    fs::read(folder.join(file)).map_err(|source| ArtifactError::File { file: file.to_owned(), source })
}

fn check_place(folder: &Path, manifest: &Manifest) -> Result<(), ArtifactError> {
    let mut parts = folder.iter().rev().map(|part| part.to_string_lossy());
    let (version, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let folder = format!("{name}/{version}");
    let named = format!("{}/{}", manifest.name, manifest.version);
    if named == folder { Ok(()) } else { Err(ArtifactError::Misplaced { named, folder }) }
}

/// Reads a file once, and checks the very bytes that will be used.
fn read_checked(folder: &Path, manifest: &Manifest, file: &'static str) -> Result<Vec<u8>, ArtifactError> {
    let expected = manifest.files.get(file).ok_or(ArtifactError::Unlisted { file })?;
    let bytes = read(folder, file)?;
    let found = Digest(Sha256::digest(&bytes).into());
    if Digest::from_hex(expected) == Some(found) {
        return Ok(bytes);
    }
    Err(ArtifactError::Digest { file, found, expected: expected.clone() })
}
