use std::{
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path},
};

use bytes::Bytes;
use hlorank_graph::Digest;
use sha2::{Digest as _, Sha256};

use super::{
    ArtifactError,
    interface::{Interface, encoder, head, whole_graph},
    manifest::{MANIFEST_FILE, Manifest, ModelKind},
    onnx,
};

/// One version of one model as it was read: digests hold, and its ONNX models are of the contract's inputs and
/// outputs, whole in their files and of ONNX's own operators.
#[derive(Clone)]
pub struct Artifact {
    pub(super) manifest: Manifest,
    /// BLAKE3 of the manifest, which holds the digest of every other file.
    pub(super) digest: Digest,
    pub(super) models: OnnxModels,
    golden: Bytes,
}

/// The serialized ONNX models of an artifact.
#[derive(Clone)]
pub(super) enum OnnxModels {
    Segment { encoder: Bytes, head: Bytes },
    WholeGraph { model: Bytes },
}

pub(super) const ENCODER: &str = "encoder.onnx";
pub(super) const HEAD: &str = "head.onnx";
pub(super) const MODEL: &str = "model.onnx";
const GOLDEN: &str = "golden.npz";

/// Of one file: what ONNX allows a model that is whole in its file.
const MAX_FILE_BYTES: u64 = 2 << 30;

impl Artifact {
    /// Reads and checks a version's folder.
    pub fn read(folder: &Path) -> Result<Self, ArtifactError> {
        let manifest_bytes = read(folder, MANIFEST_FILE)?;
        let manifest = Manifest::read(&manifest_bytes)?;
        check_place(folder, &manifest)?;
        let files = Files { folder, manifest: &manifest };
        files.check_unused()?;
        let task = manifest.task();
        let models = match manifest.kind() {
            ModelKind::Segment => OnnxModels::Segment {
                encoder: files.model(ENCODER, &encoder(task, manifest.embedding_size))?,
                head: files.model(HEAD, &head(manifest.embedding_size))?,
            },
            ModelKind::WholeGraph { .. } => {
                OnnxModels::WholeGraph { model: files.model(MODEL, &whole_graph(task))? }
            }
        };
        let golden = files.checked(GOLDEN)?;
        let digest = Digest(*blake3::hash(&manifest_bytes).as_bytes());
        Ok(Self { manifest, digest, models, golden })
    }

    /// What it says of itself.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// `golden.npz`.
    #[must_use]
    pub fn golden(&self) -> &Bytes {
        &self.golden
    }
}

/// The files of a version, as its manifest lists them.
struct Files<'a> {
    folder: &'a Path,
    manifest: &'a Manifest,
}

impl Files<'_> {
    /// Reads an ONNX model that must have this interface.
    fn model(&self, file: &'static str, interface: &Interface) -> Result<Bytes, ArtifactError> {
        let bytes = self.checked(file)?;
        onnx::check(file, &bytes, interface)?;
        Ok(bytes)
    }

    /// Reads a file once, and checks the very bytes that will be used.
    fn checked(&self, file: &'static str) -> Result<Bytes, ArtifactError> {
        let expected = self.manifest.files.get(file).ok_or(ArtifactError::Unlisted { file })?;
        self.digest_holds(file, expected)
    }

    /// Checks the files that no model of this kind is made of, too: what is listed is what was exported.
    fn check_unused(&self) -> Result<(), ArtifactError> {
        let used = [ENCODER, HEAD, MODEL, GOLDEN];
        let unused = self.manifest.files.iter().filter(|(file, _)| !used.contains(&file.as_str()));
        unused.into_iter().try_for_each(|(file, expected)| self.digest_holds(file, expected).map(drop))
    }

    fn digest_holds(&self, file: &str, expected: &str) -> Result<Bytes, ArtifactError> {
        let bytes = read(self.folder, file)?;
        let found = Digest(Sha256::digest(&bytes).into());
        if Digest::from_hex(expected) == Some(found) {
            return Ok(bytes);
        }
        Err(ArtifactError::Digest { file: file.to_owned(), found, expected: expected.to_owned() })
    }
}

/// Reads a file of a folder that neither its name nor a link leads out of.
fn read(folder: &Path, file: &str) -> Result<Bytes, ArtifactError> {
    let outside = || ArtifactError::OutsideFolder { file: file.to_owned() };
    let failed = |source| ArtifactError::File { file: file.to_owned(), source };
    let mut parts = Path::new(file).components();
    if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
        return Err(outside());
    }
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = fs::canonicalize(folder.join(file)).map_err(failed)?;
    if !path.starts_with(folder) {
        return Err(outside());
    }
    // Not a pipe, which would be waited for.
    if !fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let opened = File::open(path).map_err(failed)?;
    let found = opened.metadata().map_err(failed)?.len();
    if found > MAX_FILE_BYTES {
        return Err(ArtifactError::FileTooLarge { file: file.to_owned(), found, limit: MAX_FILE_BYTES });
    }
    let mut bytes = Vec::new();
    // It may grow while it is read.
    opened.take(MAX_FILE_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes.into())
}

fn check_place(folder: &Path, manifest: &Manifest) -> Result<(), ArtifactError> {
    let mut parts = folder.iter().rev().map(|part| part.to_string_lossy());
    let (version, name) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let folder = format!("{name}/{version}");
    let named = format!("{}/{}", manifest.name, manifest.version);
    if named == folder { Ok(()) } else { Err(ArtifactError::Misplaced { named, folder }) }
}
