//! A copy of the repository's artifacts, to be changed.

use std::{
    fs,
    path::{Path, PathBuf},
};

use hlorank_graph::Digest;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::repository;

/// A model folder of its own, gone when its test ends.
pub struct Artifacts {
    folder: TempDir,
}

impl Artifacts {
    /// Copies `models/registry`.
    ///
    /// # Panics
    /// Where files cannot be copied.
    #[must_use]
    pub fn copy() -> Self {
        let (shipped, folder) = (repository("models/registry"), tempfile::tempdir().expect("a folder"));
        for version in versions(&shipped) {
            let to = folder.path().join(version.strip_prefix(&shipped).expect("a folder in it"));
            fs::create_dir_all(&to).expect("a folder");
            for file in fs::read_dir(version).expect("a version").map(|entry| entry.expect("a file").path()) {
                fs::copy(&file, to.join(file.file_name().expect("a name"))).expect("a copy");
            }
        }
        Self { folder }
    }

    /// The flag that has a server take its models from here.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--models={}", self.folder.path().display())
    }

    /// The folders `NAME/VERSION`, ascending.
    #[must_use]
    pub fn versions(&self) -> Vec<PathBuf> {
        versions(self.folder.path())
    }

    /// Changes the manifest of a version.
    ///
    /// # Panics
    /// Where there is none.
    pub fn edit_manifest(&self, version: &Path, edit: impl FnOnce(&mut Value)) {
        let path = self.folder.path().join(version).join("manifest.json");
        let mut manifest = serde_json::from_slice(&fs::read(&path).expect("a manifest")).expect("JSON");
        edit(&mut manifest);
        fs::write(path, manifest.to_string()).expect("a manifest");
    }

    /// Changes a file of a version, and its digest in the manifest.
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

fn versions(folder: &Path) -> Vec<PathBuf> {
    let mut versions: Vec<PathBuf> = subfolders(folder).iter().flat_map(|model| subfolders(model)).collect();
    versions.sort();
    versions
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect()
}
