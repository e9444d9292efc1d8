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
    SMALL_TILE_MODEL, TILE_MODEL, all_models, fixture, models,
    onnx::{fail_above, overwrite_row},
    repository,
};

/// Temporary model folder, removed when it is dropped.
pub struct Artifacts {
    folder: TempDir,
}

impl Artifacts {
    /// Copies the models of [`models`] and the whole-graph artifacts of `tests/data/registry`.
    ///
    /// # Panics
    /// If files cannot be copied.
    pub fn copy() -> Self {
        Self::of_folders(&[models(), fixture("registry")])
    }

    /// Copies the models of [`all_models`] and the whole-graph artifacts of `tests/data/registry`.
    ///
    /// # Panics
    /// If files cannot be copied.
    pub fn all() -> Self {
        Self::of_folders(&[all_models(), fixture("registry")])
    }

    fn of_folders(folders: &[PathBuf]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for registry in folders {
            copy_folder(registry, folder.path()).expect("artifacts can be copied");
        }
        Self { folder }
    }

    /// Copies both tile models of the tests and nothing else, which a server loads in a fraction of the time of all.
    ///
    /// # Panics
    /// If files cannot be copied.
    pub fn tiles() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        for model in [TILE_MODEL, SMALL_TILE_MODEL] {
            let to = folder.path().join(model);
            copy_folder(&models().join(model), &to).expect("artifacts can be copied");
        }
        Self { folder }
    }

    /// Adds the artifacts of `models/papers`.
    ///
    /// # Panics
    /// If files cannot be copied.
    pub fn with_papers(self) -> Self {
        copy_folder(&repository("models/papers"), self.folder.path())
            .expect("artifacts can be copied");
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
        subfolders(&self.folder.path().join(name))
    }

    /// Returns the folders of all versions of all models, ascending.
    pub fn all_versions(&self) -> Vec<PathBuf> {
        subfolders(self.folder.path())
            .iter()
            .flat_map(|model| subfolders(model))
            .collect()
    }

    /// Publishes a version of a model as an exporter does: built elsewhere, then moved into place atomically. It is a
    /// copy of the newest version with the changes that `change` makes to its folder.
    ///
    /// # Panics
    /// If the model has no version, or files cannot be copied.
    pub fn publish(&self, name: &str, version: u64, change: impl FnOnce(&Path)) -> PathBuf {
        let folder = self.folder.path().join(name);
        let newest = subfolders(&folder)
            .into_iter()
            .max_by_key(|path| version_number(path));
        let elsewhere = tempfile::tempdir_in(self.folder.path()).expect("a folder can be made");
        copy_folder(&newest.expect("the model has a version"), elsewhere.path())
            .expect("artifacts can be copied");
        self.edit_manifest(elsewhere.path(), |manifest| {
            manifest["version"] = version.into();
        });
        change(elsewhere.path());
        let published = folder.join(version.to_string());
        fs::rename(elsewhere.keep(), &published).expect("a version can be published");
        published
    }

    /// Copies all versions of a model under another name.
    ///
    /// # Panics
    /// Where there is none.
    pub fn copy_model(&self, from: &str, to: &str) {
        let folder = self.folder.path();
        copy_folder(&folder.join(from), &folder.join(to)).expect("artifacts can be copied");
        for version in self.versions(to) {
            self.edit_manifest(&version, |manifest| manifest["name"] = to.into());
        }
    }

    /// Makes a model return scores that are not finite for graphs with this opcode, which its golden cases lack.
    ///
    /// # Panics
    /// If there is no such model, or the model lacks the opcode.
    pub fn spoil_opcode(&self, name: &str, opcode: u8) {
        for version in self.versions(name) {
            let files = ["model.onnx", "segment.onnx", "encoder.onnx"];
            let file = files
                .into_iter()
                .find(|file| version.join(file).is_file())
                .expect("an ONNX file");
            self.edit_file(&version, file, |model| {
                overwrite_row(model, "opcode.weight", opcode.into(), f32::INFINITY);
            });
        }
    }

    /// Makes the encoder of a segment model fail for tiles with a feature above a limit, which its golden cases stay
    /// below.
    ///
    /// # Panics
    /// If there is no such model.
    pub fn fail_above(&self, name: &str, limit: f32) {
        for version in self.versions(name) {
            self.edit_file(&version, "encoder.onnx", |model| fail_above(model, limit));
        }
    }

    /// Edits the manifest of a version.
    ///
    /// # Panics
    /// Where there is none.
    pub fn edit_manifest(&self, version: &Path, edit: impl FnOnce(&mut Value)) {
        let path = self.folder.path().join(version).join("manifest.json");
        let mut manifest =
            serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
        edit(&mut manifest);
        fs::write(path, manifest.to_string()).expect("a manifest");
    }

    /// Edits a file of a version, and its digest in the manifest.
    ///
    /// # Panics
    /// Where there is none.
    pub fn edit_file(&self, version: &Path, file: &str, edit: impl FnOnce(&mut Vec<u8>)) {
        let path = self.folder.path().join(version).join(file);
        let mut bytes = fs::read(&path).expect("a file");
        edit(&mut bytes);
        let digest = Digest(Sha256::digest(&bytes).into()).to_string();
        fs::write(path, bytes).expect("a file");
        self.edit_manifest(version, |manifest| manifest["files"][file] = digest.into());
    }
}

fn version_number(path: &Path) -> Option<u64> {
    path.file_name()?.to_str()?.parse().ok()
}

/// Returns the golden cases of the artifact of a version.
///
/// # Panics
/// If the golden cases cannot be read.
pub fn golden_cases(version: &Path) -> Vec<GoldenCase> {
    let path = version.join("golden.npz");
    let bytes = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    read_golden_cases(&path, bytes, &Limits::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let to = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy_folder(&path, &to)?;
        } else {
            fs::copy(&path, &to).map(drop)?;
        }
    }
    Ok(())
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let folders = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir());
    let mut folders: Vec<PathBuf> = folders.collect();
    folders.sort();
    folders
}
