use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use hlorank_graph::Digest;

use crate::model::MANIFEST_FILE;

/// The result of a scan of a model folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderScan {
    /// The versions by model name, or `None` for a folder that could not be read.
    pub(super) models: BTreeMap<String, Option<FoundVersions>>,
    /// Descriptions of what could not be read, with the causes.
    pub(super) problems: Vec<String>,
}

/// The versions of a model that have a manifest. Each has a fingerprint, which changes when one of its files does, or
/// `None` if its folder could not be read.
pub(super) type FoundVersions = BTreeMap<u64, Option<Digest>>;

/// Scans `NAME/VERSION` for manifests. Folders that are not named by a version number are ignored.
///
/// An error says nothing about the versions: those on a disk that cannot be read are not removed.
pub(super) fn scan(folder: &Path) -> io::Result<FolderScan> {
    let mut found = FolderScan::default();
    for (name, path) in subfolders(folder)? {
        let versions = found.read(&path, || versions(&path)).map(|versions| {
            let fingerprint = |(version, path): (u64, PathBuf)| match found.read(&path, || fingerprint(&path))
            {
                Ok(fingerprint) => Some((version, Some(fingerprint?))),
                Err(Unreadable) => Some((version, None)),
            };
            versions.into_iter().flatten().filter_map(fingerprint).collect()
        });
        found.models.insert(name, versions.ok());
    }
    Ok(found)
}

/// Something could not be read, and was added to the problems.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

impl FolderScan {
    /// Reads something from a folder. Returns `None` if it was removed in the meantime.
    fn read<T>(
        &mut self,
        path: &Path,
        read: impl FnOnce() -> io::Result<T>,
    ) -> Result<Option<T>, Unreadable> {
        match read() {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                self.problems.push(format!("cannot read `{}`: {error}", path.display()));
                Err(Unreadable)
            }
        }
    }
}

/// Returns the numbers and folders of a model's versions.
fn versions(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let versions = subfolders(folder)?.into_iter().filter_map(|(name, path)| {
        let version = version_number(&name)?;
        is_there(&path.join(MANIFEST_FILE), fs::Metadata::is_file).then_some((version, path))
    });
    Ok(versions.collect())
}

/// Returns the folder of a version.
pub(super) fn version_folder(folder: &Path, name: &str, version: u64) -> PathBuf {
    folder.join(name).join(version.to_string())
}

/// Parses a version number: 1 or more, without a sign or leading zeros.
fn version_number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|version: &u64| *version > 0 && version.to_string() == name)
}

/// Returns the name and path of each folder in a folder.
fn subfolders(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if is_there(&path, fs::Metadata::is_dir)
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
        {
            folders.push((name.to_owned(), path));
        }
    }
    Ok(folders)
}

/// Returns whether a path exists and is of a kind. The answer is yes if that is unknown, so that reading the path
/// reports the cause.
fn is_there(path: &Path, kind: impl FnOnce(&fs::Metadata) -> bool) -> bool {
    match fs::metadata(path) {
        Ok(found) => kind(&found),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns a digest of the names, sizes and modification times of a folder's files.
fn fingerprint(folder: &Path) -> io::Result<Digest> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A dangling link counts as a file without size and time.
        let file = fs::metadata(&path).ok().map(|file| (file.len(), file.modified().ok()));
        files.push((path, file));
    }
    files.sort();
    Ok(Digest(*blake3::hash(format!("{files:?}").as_bytes()).as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(versions: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for version in versions {
            fs::create_dir_all(folder.path().join(version)).unwrap();
            fs::write(folder.path().join(version).join(MANIFEST_FILE), "{}").unwrap();
        }
        folder
    }

    fn versions(folder: &Path) -> Vec<u64> {
        scan(folder).unwrap().models["m"].as_ref().unwrap().keys().copied().collect()
    }

    #[test]
    fn versions_are_numbered_folders_with_a_manifest() {
        let folder = registry(&["m/1", "m/10", "m/2", "m/0", "m/02", "m/old", "m/-3"]);
        fs::create_dir_all(folder.path().join("m/7")).unwrap();
        fs::write(folder.path().join("policy.json"), "{}").unwrap();
        assert_eq!(versions(folder.path()), [1, 2, 10]);
    }

    #[test]
    fn a_changed_file_changes_the_fingerprint() {
        let folder = registry(&["m/1"]);
        let before = scan(folder.path()).unwrap();
        assert_eq!(scan(folder.path()).unwrap(), before);
        fs::write(folder.path().join("m/1/encoder.onnx"), "half").unwrap();
        assert_ne!(scan(folder.path()).unwrap(), before);
    }

    #[test]
    fn an_unreadable_folder_is_reported_and_the_others_are_found() {
        let folder = registry(&["m/1"]);
        // No user can read a loop of links.
        std::os::unix::fs::symlink("n", folder.path().join("n")).unwrap();
        let found = scan(folder.path()).unwrap();
        assert!(found.models["m"].is_some() && found.models["n"].is_none());
        assert!(found.problems.len() == 1 && found.problems[0].contains("/n`"), "{:?}", found.problems);
    }

    #[test]
    fn a_removed_model_folder_is_an_error() {
        let folder = registry(&["m/1"]);
        let path = folder.path().to_owned();
        assert!(scan(&path).is_ok());
        drop(folder);
        assert!(scan(&path).is_err());
    }
}
