//! A copy of the repository's artifacts that a test may change.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hlorank_graph::{Digest, GoldenCase, Limits, read_golden_cases};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::{
    SMALL_TILE_MODEL, TILE_MODEL, all_models,
    data::entries,
    fixture,
    model::newest_version,
    models,
    onnx::{fail_above, overwrite_row},
    repository,
};

/// Temporary model folder, removed when it is dropped.
pub struct Artifacts {
    folder: TempDir,
}

impl Artifacts {
    /// Copies the models of [`models`] and the whole-graph artifacts of `tests/data/registry`.
    pub fn copy() -> Self {
        Self::empty().with(&models()).with(&fixture("registry"))
    }

    /// Copies the models of [`all_models`] and the whole-graph artifacts of `tests/data/registry`.
    pub fn all() -> Self {
        Self::empty().with(&all_models()).with(&fixture("registry"))
    }

    /// Copies both tile models of the tests and nothing else, which a server loads in a fraction of the time of all.
    pub fn tiles() -> Self {
        let artifacts = Self::empty();
        for model in [TILE_MODEL, SMALL_TILE_MODEL] {
            copy_folder(&models().join(model), &artifacts.folder().join(model));
        }
        artifacts
    }

    /// Adds the artifacts of `models/papers`.
    pub fn with_papers(self) -> Self {
        self.with(&repository("models/papers"))
    }

    fn empty() -> Self {
        Self {
            folder: tempfile::tempdir().expect("a temporary folder can be made"),
        }
    }

    fn with(self, registry: &Path) -> Self {
        copy_folder(registry, self.folder());
        self
    }

    /// Returns the folder that contains `NAME/VERSION`.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the server flag that selects this model folder.
    pub fn flag(&self) -> String {
        format!("--models={}", self.folder.path().display())
    }

    /// Returns the folders of all versions of a model, ascending.
    pub fn versions(&self, name: &str) -> Vec<PathBuf> {
        subfolders(&self.folder().join(name))
    }

    /// Returns the folders of all versions of all models, ascending.
    pub fn all_versions(&self) -> Vec<PathBuf> {
        let models = subfolders(self.folder());
        models.iter().flat_map(|model| subfolders(model)).collect()
    }

    /// Publishes a version of a model as an exporter does: built elsewhere, then moved into place atomically. It is a
    /// copy of the newest version with the changes that `change` makes to its folder.
    pub fn publish(&self, name: &str, version: u64, change: impl FnOnce(&Path)) -> PathBuf {
        let folder = self.folder().join(name);
        let elsewhere = tempfile::tempdir_in(self.folder()).expect("a folder can be made");
        copy_folder(&newest_version(&folder), elsewhere.path());
        self.edit_manifest(elsewhere.path(), |manifest| {
            manifest["version"] = version.into();
        });
        change(elsewhere.path());
        let published = folder.join(version.to_string());
        fs::rename(elsewhere.keep(), &published).expect("a version can be published");
        published
    }

    /// Copies all versions of a model under another name.
    pub fn copy_model(&self, from: &str, to: &str) {
        copy_folder(&self.folder().join(from), &self.folder().join(to));
        for version in self.versions(to) {
            self.edit_manifest(&version, |manifest| manifest["name"] = to.into());
        }
    }

    /// Makes a model return scores that are not finite for graphs with this opcode, which its golden cases lack.
    pub fn spoil_opcode(&self, name: &str, opcode: u8) {
        for version in self.versions(name) {
            let mut files = ["model.onnx", "segment.onnx", "encoder.onnx"].into_iter();
            let file = files.find(|file| version.join(file).is_file());
            self.edit_file(&version, file.expect("an ONNX file"), |model| {
                overwrite_row(model, "opcode.weight", opcode.into(), f32::INFINITY);
            });
        }
    }

    /// Makes the encoder of a segment model fail for tiles with a feature above a limit, which its golden cases stay
    /// below.
    pub fn fail_above(&self, name: &str, limit: f32) {
        for version in self.versions(name) {
            self.edit_file(&version, "encoder.onnx", |model| fail_above(model, limit));
        }
    }

    /// Edits the manifest of a version.
    pub fn edit_manifest(&self, version: &Path, edit: impl FnOnce(&mut Value)) {
        let path = self.folder.path().join(version).join("manifest.json");
        let mut manifest =
            serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
        edit(&mut manifest);
        fs::write(path, manifest.to_string()).expect("a manifest");
    }

    /// Edits a file of a version, and its digest in the manifest.
    pub fn edit_file(&self, version: &Path, file: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = self.folder.path().join(version).join(file);
        let mut bytes = fs::read(&path).expect("a file");
        edit(&mut bytes);
        let digest = Digest(Sha256::digest(&bytes).into()).to_string();
        fs::write(path, bytes).expect("a file");
        self.edit_manifest(version, |manifest| manifest["files"][file] = digest.into());
    }
}

/// Returns the golden cases of the artifact of a version.
pub fn golden_cases(version: &Path) -> Vec<GoldenCase> {
    let path = version.join("golden.npz");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read_golden_cases(&path, bytes, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder can be made");
    for path in entries(from) {
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &to);
        } else {
            fs::copy(&path, &to).expect("a file can be copied");
        }
    }
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = entries(folder).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}
