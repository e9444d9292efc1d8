use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path, PathBuf},
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
        // The manifest is not parsed before its author is known. One signature is enough, because
        // the manifest has the digests of all other files.
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
        let onnx = files.models(&expected)?;
        let golden = files.checked(GOLDEN)?;
        let calibration = files.calibration()?;
        Ok(Self {
            manifest,
            digest: Digest(*blake3::hash(&manifest_bytes).as_bytes()),
            onnx,
            golden,
            calibration,
        })
    }

    /// An artifact without files.
    pub(super) fn absent(manifest: Manifest) -> Self {
        Self {
            // There is no file to digest. The set tells the absent models of different sets apart.
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
        runtime
            .session(self.onnx(file)?)
            .map_err(|source| ArtifactError::Session { file, source })
    }

    /// Finds out how the memory of a run of `model.onnx` grows.
    pub(super) fn growth(&self, runtime: &Runtime) -> Result<MemoryGrowth, ArtifactError> {
        let task = self.manifest.task();
        MemoryGrowth::measure(self.onnx(MODEL)?, runtime, task, self.manifest.features())
    }

    fn onnx(&self, file: &'static str) -> Result<&Bytes, ArtifactError> {
        self.onnx.get(file).ok_or(ArtifactError::Unlisted { file })
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
    /// Reads ONNX models, which must have these interfaces.
    fn models(
        &self,
        expected: &[(&'static str, Interface)],
    ) -> Result<BTreeMap<&'static str, Bytes>, ArtifactError> {
        let model = |(file, interface): &(&'static str, Interface)| {
            let bytes = self.checked(file)?;
            onnx::check(file, &bytes, interface)?;
            Ok((*file, bytes))
        };
        expected.iter().map(model).collect()
    }

    /// Reads the calibration, if the manifest lists one.
    fn calibration(&self) -> Result<Option<Calibration>, ArtifactError> {
        if !self.manifest.files.contains_key(CALIBRATION_FILE) {
            return Ok(None);
        }
        let columns = self.manifest.config_columns();
        let calibration = Calibration::read(&self.checked(CALIBRATION_FILE)?, columns);
        calibration.map(Some).map_err(ArtifactError::Calibration)
    }

    /// Reads a file, and checks its digest.
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
        let files = self.manifest.files.iter();
        files
            .filter(|(file, _)| !is_used(file))
            .try_for_each(|(file, expected)| self.digest_holds(file, expected).map(drop))
    }

    fn digest_holds(&self, file: &str, expected: &str) -> Result<Bytes, ArtifactError> {
        // What is checked here is what is used, even if the file changes later.
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
    let failed = |source| ArtifactError::File {
        file: file.to_owned(),
        source,
    };
    let Some(path) = path_within(folder, file).map_err(failed)? else {
        return Err(ArtifactError::OutsideFolder {
            file: file.to_owned(),
        });
    };
    let opened = open_file(&path).map_err(failed)?;
    let found = opened.metadata().map_err(failed)?.len();
    let limit = max_bytes(file);
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

/// Returns the path of a file of a folder; `None` if the file is outside it.
fn path_within(folder: &Path, file: &str) -> io::Result<Option<PathBuf>> {
    let mut parts = Path::new(file).components();
    let name = (parts.next(), parts.next());
    if !matches!(name, (Some(Component::Normal(_)), None)) {
        return Ok(None);
    }
    // Links are resolved on both sides: the folder itself may be reached through one.
    let folder = fs::canonicalize(folder)?;
    let path = fs::canonicalize(folder.join(file))?;
    Ok(path.starts_with(folder).then_some(path))
}

fn open_file(path: &Path) -> io::Result<File> {
    // To open a pipe would block until another process writes to it.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no file"));
    }
    File::open(path)
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
    let version = parts.next().unwrap_or_default();
    let name = parts.next().unwrap_or_default();
    let folder = format!("{name}/{version}");
    let named = format!("{}/{}", manifest.name, manifest.version);
    if named == folder {
        Ok(())
    } else {
        Err(ArtifactError::Misplaced { named, folder })
    }
}
