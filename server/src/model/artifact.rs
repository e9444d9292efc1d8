use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read as _},
    path::{Component, Path},
};

use bytes::Bytes;
use hlorank_graph::{Digest, Pad, Task};
use sha2::{Digest as _, Sha256};

use super::{
    Calibration, MANIFEST_FILE, Manifest, Rejection,
    calibration::CALIBRATION_FILE,
    onnx,
    signature::{ModelKeys, SIGNATURE_FILE},
};

/// One version of one model as it was read. Its digests hold, and its ONNX models have the inputs and outputs of the
/// contract, hold all their weights, and use only ONNX's own operators.
#[derive(Clone)]
pub struct Artifact {
    /// What it says of itself.
    pub manifest: Manifest,
    /// BLAKE3 of the manifest, which holds the digest of every other file.
    pub digest: Digest,
    /// The serialized ONNX models by file name.
    onnx: BTreeMap<&'static str, Bytes>,
    /// The bytes of `golden.npz`.
    pub golden: Bytes,
    /// How well the model ranked the validation data, if the artifact says so.
    pub calibration: Option<Calibration>,
}

/// What models of every kind have.
#[derive(Clone, Debug)]
pub struct ModelFacts {
    /// Name of the model.
    pub name: String,
    /// BLAKE3 of the manifest, which holds the digest of every other file.
    pub digest: Digest,
    /// What the model scores.
    pub task: Task,
    /// The value that pads the sequence features.
    pub pad: Pad,
    /// Whether it takes the columns of loops behind the features of a tile.
    pub has_loops: bool,
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
    pub fn read(folder: &Path, keys: Option<&ModelKeys>) -> Result<Self, Rejection> {
        let manifest_bytes = read(folder, MANIFEST_FILE)?;
        // The manifest is not parsed before its author is known. One signature is enough, because
        // the manifest has the digests of all other files.
        if let Some(keys) = keys {
            let signature = read(folder, SIGNATURE_FILE).map_err(|error| error.message);
            let signed = signature.and_then(|signature| keys.check(&signature, &manifest_bytes));
            signed.map_err(|detail| {
                let message = format!(
                    "{SIGNATURE_FILE}: {detail}; --models-key accepts only versions that `model_signing sign key` has signed with one of its keys"
                );
                Rejection::new("SIGNATURE_INVALID", message)
            })?;
        }
        let manifest = Manifest::read(&manifest_bytes)?;
        check_place(folder, &manifest)?;
        let onnx_files = manifest.onnx_files();
        let is_used = |file: &str| {
            [GOLDEN, CALIBRATION_FILE].contains(&file)
                || onnx_files.iter().any(|(used, _)| *used == file)
        };
        // Listed files that the model does not use are checked, too, so that what is listed is what
        // was exported.
        let mut files = BTreeMap::new();
        for (file, digest) in &manifest.files {
            // What is checked here is what is used, even if the file changes later.
            let bytes = read(folder, file)?;
            let found = Digest(Sha256::digest(&bytes).into());
            if Digest::from_hex(digest) != Some(found) {
                let message = format!("{file} has SHA-256 {found}, {MANIFEST_FILE} says {digest}");
                return Err(Rejection::new("DIGEST_MISMATCH", message));
            }
            if is_used(file) {
                files.insert(file.as_str(), bytes);
            }
        }
        let mut onnx = BTreeMap::new();
        for (file, interface) in onnx_files {
            let bytes = files.remove(file).ok_or_else(|| unlisted(file))?;
            onnx::check(file, &bytes, &interface)?;
            onnx.insert(file, bytes);
        }
        let golden = files.remove(GOLDEN).ok_or_else(|| unlisted(GOLDEN))?;
        let named = manifest.features.config_features();
        let columns = manifest.task.kind().row_columns(named);
        let calibration = files
            .remove(CALIBRATION_FILE)
            .map(|bytes| Calibration::read(&bytes, columns))
            .transpose()
            .map_err(|detail| {
                let message = format!("{CALIBRATION_FILE} cannot be used: {detail}");
                Rejection::new("CALIBRATION_INVALID", message)
            })?;
        Ok(Self {
            digest: Digest(*blake3::hash(&manifest_bytes).as_bytes()),
            manifest,
            onnx,
            golden,
            calibration,
        })
    }

    /// An artifact without files.
    pub(super) fn absent(manifest: Manifest) -> Self {
        Self {
            // There is no file to digest. The set tells the absent models of different sets apart.
            digest: manifest.features.digest(),
            manifest,
            onnx: BTreeMap::new(),
            golden: Bytes::new(),
            calibration: None,
        }
    }

    pub(super) fn facts(&self) -> ModelFacts {
        ModelFacts {
            name: self.manifest.name.clone(),
            digest: self.digest,
            task: self.manifest.task,
            pad: self.manifest.pad,
            has_loops: self.manifest.features.has_loops(),
        }
    }

    /// One of its ONNX models.
    pub(super) fn onnx(&self, file: &str) -> Result<&Bytes, Rejection> {
        self.onnx.get(file).ok_or_else(|| unlisted(file))
    }
}

fn unlisted(file: &str) -> Rejection {
    Rejection::new(
        "FILE_UNLISTED",
        format!("{MANIFEST_FILE} lists no digest of {file}"),
    )
}

/// Reads a file of a folder. Neither its name nor a link may lead out of the folder.
fn read(folder: &Path, file: &str) -> Result<Bytes, Rejection> {
    let failed = |error: io::Error| Rejection::of_file(file, &error);
    let outside = || {
        let message =
            format!("{file} is outside the folder of the version; give plain names of files in it");
        Rejection::new("FILE_OUTSIDE_FOLDER", message)
    };
    let mut parts = Path::new(file).components();
    if !matches!(
        (parts.next(), parts.next()),
        (Some(Component::Normal(_)), None)
    ) {
        return Err(outside());
    }
    // Links are resolved on both sides: the folder itself may be reached through one.
    let folder = fs::canonicalize(folder).map_err(failed)?;
    let path = fs::canonicalize(folder.join(file)).map_err(failed)?;
    if !path.starts_with(&folder) {
        // The files of a version change only with its folder, which a link elsewhere would not hold to.
        let message = format!(
            "{file} is a link that leads out of the folder of the version, and such links are not followed; `cp -rL` copies a version with \
             the files themselves"
        );
        return Err(Rejection::new("FILE_OUTSIDE_FOLDER", message));
    }
    // To open a pipe would block until another process writes to it.
    if !fs::metadata(&path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is no file")));
    }
    let opened = File::open(&path).map_err(failed)?;
    let found = opened.metadata().map_err(failed)?.len();
    let limit = match file {
        MANIFEST_FILE | SIGNATURE_FILE | CALIBRATION_FILE => MAX_MANIFEST_BYTES,
        GOLDEN => MAX_GOLDEN_BYTES,
        _ => MAX_FILE_BYTES,
    };
    if found > limit {
        let message = format!("{file} has {found} bytes, at most {limit} are allowed");
        return Err(Rejection::new("FILE_TOO_LARGE", message));
    }
    let mut bytes = Vec::with_capacity(found.try_into().unwrap_or_default());
    // The file may grow while it is read.
    opened.take(limit).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes.into())
}

fn check_place(folder: &Path, manifest: &Manifest) -> Result<(), Rejection> {
    let mut parts = folder.iter().rev().map(|part| part.to_string_lossy());
    let version = parts.next().unwrap_or_default();
    let name = parts.next().unwrap_or_default();
    let folder = format!("{name}/{version}");
    let named = format!("{}/{}", manifest.name, manifest.version);
    if named == folder {
        return Ok(());
    }
    let message = format!("{MANIFEST_FILE} names {named}, but is in {folder}");
    Err(Rejection::new("MISPLACED", message))
}
