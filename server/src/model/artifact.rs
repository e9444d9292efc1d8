use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path},
};

use bytes::Bytes;
use hlorank_graph::Digest;
use ort::session::Session;
use sha2::{Digest as _, Sha256};

use super::{
    ArtifactError, Calibration, MemoryGrowth,
    calibration::CALIBRATION_FILE,
    interface::Interface,
    manifest::{MODEL, Manifest},
    manifest_error::MANIFEST_FILE,
    onnx,
    signature::{ModelKeys, SIGNATURE_FILE, SignatureError},
};
use crate::runtime::Runtime;

/// One version of one model as it was read. Its digests hold, and its ONNX models have the inputs and outputs of the
/// contract, hold all their weights, and use only ONNX's own operators.
#[derive(Clone)]
pub struct Artifact {
    manifest: Manifest,
    digest: Digest,
    /// The serialized ONNX models by file name.
    onnx: BTreeMap<&'static str, Bytes>,
    golden: Bytes,
    /// `None` if the artifact does not say how far its ranking can be trusted.
    calibration: Option<Calibration>,
}

const GOLDEN: &str = "golden.npz";

/// Maximum size of the manifest, of its signature, and of the calibration.
const MAX_MANIFEST_BYTES: u64 = 1 << 20;

/// Maximum size of the golden cases, which are compressed.
const MAX_GOLDEN_BYTES: u64 = 16 << 20;

/// Maximum size of any other file. Each worker's session has a copy of the weights.
const MAX_FILE_BYTES: u64 = 256 << 20;

impl Artifact {
    /// Reads and checks a version's folder. With keys, one of them must have signed the manifest.
    pub fn read(folder: &Path, keys: Option<&ModelKeys>) -> Result<Self, ArtifactError> {
        let manifest_bytes = read(folder, MANIFEST_FILE)?;
        if let Some(keys) = keys {
            let signature = read(folder, SIGNATURE_FILE)
                .map_err(|error| SignatureError::Malformed(error.to_string()))?;
            keys.check(&signature, &manifest_bytes)?;
        }
        let manifest = Manifest::read(&manifest_bytes)?;
        check_place(folder, &manifest)?;
        let files = Files {
            folder,
            manifest: &manifest,
        };
        let expected = manifest.onnx_files();
        files.check_unused(&expected)?;
        let onnx = expected
            .iter()
            .map(|(file, interface)| Ok((*file, files.model(file, interface)?)));
        let onnx = onnx.collect::<Result<_, ArtifactError>>()?;
        let golden = files.checked(GOLDEN)?;
        let is_calibrated = manifest.files.contains_key(CALIBRATION_FILE);
        let calibration = is_calibrated.then(|| files.calibration()).transpose()?;
        let digest = Digest(*blake3::hash(&manifest_bytes).as_bytes());
        Ok(Self {
            manifest,
            digest,
            onnx,
            golden,
            calibration,
        })
    }

    /// An artifact without files.
    pub(super) fn absent(manifest: Manifest) -> Self {
        Self {
            digest: manifest.features().digest(),
            manifest,
            onnx: BTreeMap::new(),
            golden: Bytes::new(),
            calibration: None,
        }
    }

    /// Makes a session of one of its ONNX models.
    pub(super) fn session(
        &self,
        file: &'static str,
        runtime: &Runtime,
    ) -> Result<Session, ArtifactError> {
        let bytes = self
            .onnx
            .get(file)
            .ok_or(ArtifactError::Unlisted { file })?;
        runtime
            .session(bytes)
            .map_err(|source| ArtifactError::Session { file, source })
    }

    /// Finds out how the memory of a run of `model.onnx` grows.
    pub(super) fn growth(&self, runtime: &Runtime) -> Result<MemoryGrowth, ArtifactError> {
        let bytes = self
            .onnx
            .get(MODEL)
            .ok_or(ArtifactError::Unlisted { file: MODEL })?;
        MemoryGrowth::measure(
            bytes,
            runtime,
            self.manifest.task(),
            self.manifest.features(),
        )
    }

    /// BLAKE3 of the manifest, which holds the digest of every other file.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How far its ranking can be trusted, if it says so.
    #[must_use]
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// The bytes of `golden.npz`.
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
    /// Reads an ONNX model, which must have this interface.
    fn model(&self, file: &'static str, interface: &Interface) -> Result<Bytes, ArtifactError> {
        let bytes = self.checked(file)?;
        onnx::check(file, &bytes, interface)?;
        Ok(bytes)
    }

    fn calibration(&self) -> Result<Calibration, ArtifactError> {
        let bytes = self.checked(CALIBRATION_FILE)?;
        Calibration::read(&bytes).map_err(ArtifactError::Calibration)
    }

    /// Reads a file once, and checks the very bytes that will be used.
    fn checked(&self, file: &'static str) -> Result<Bytes, ArtifactError> {
        let expected = self
            .manifest
            .files
            .get(file)
            .ok_or(ArtifactError::Unlisted { file })?;
        self.digest_holds(file, expected)
    }

    /// Checks the listed files that the model does not use, too, so that what is listed is what was exported.
    fn check_unused(&self, used: &[(&'static str, Interface)]) -> Result<(), ArtifactError> {
        let is_used = |file: &str| {
            [GOLDEN, CALIBRATION_FILE].contains(&file) || used.iter().any(|(used, _)| *used == file)
        };
        let unused = self
            .manifest
            .files
            .iter()
            .filter(|(file, _)| !is_used(file));
        unused
            .into_iter()
            .try_for_each(|(file, expected)| self.digest_holds(file, expected).map(drop))
    }

    fn digest_holds(&self, file: &str, expected: &str) -> Result<Bytes, ArtifactError> {
        let bytes = read(self.folder, file)?;
        let found = Digest(Sha256::digest(&bytes).into());
        if Digest::from_hex(expected) == Some(found) {
            return Ok(bytes);
        }
        Err(ArtifactError::Digest {
            file: file.to_owned(),
            found,
            expected: expected.to_owned(),
        })
    }
}

/// Reads a file of a folder. Neither its name nor a link may lead out of the folder.
fn read(folder: &Path, file: &str) -> Result<Bytes, ArtifactError> {
    let outside = || ArtifactError::OutsideFolder {
        file: file.to_owned(),
    };
    let failed = |source| ArtifactError::File {
        file: file.to_owned(),
        source,
    };
    let mut parts = Path::new(file).components();
    if !matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    ) {
        return Err(outside());
    }
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = fs::canonicalize(folder.join(file)).map_err(failed)?;
    if !path.starts_with(folder) {
        return Err(outside());
    }
    // A pipe would block.
    if !fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let opened = File::open(path).map_err(failed)?;
    let (found, limit) = (opened.metadata().map_err(failed)?.len(), max_bytes(file));
    if found > limit {
        return Err(ArtifactError::FileTooLarge {
            file: file.to_owned(),
            found,
            limit,
        });
    }
    let mut bytes = Vec::with_capacity(found.try_into().unwrap_or_default());
    // The file may grow while it is read.
    opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes.into())
}

fn max_bytes(file: &str) -> u64 {
    match file {
        MANIFEST_FILE | SIGNATURE_FILE | CALIBRATION_FILE => MAX_MANIFEST_BYTES,
        GOLDEN => MAX_GOLDEN_BYTES,
        _ => MAX_FILE_BYTES,
    }
}

fn check_place(folder: &Path, manifest: &Manifest) -> Result<(), ArtifactError> {
    let mut parts = folder.iter().rev().map(|part| part.to_string_lossy());
    let (version, name) = (
        parts.next().unwrap_or_default(),
        parts.next().unwrap_or_default(),
    );
    let folder = format!("{name}/{version}");
    let named = format!("{}/{}", manifest.name, manifest.version);
    if named == folder {
        Ok(())
    } else {
        Err(ArtifactError::Misplaced { named, folder })
    }
}
