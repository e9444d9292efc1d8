use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::SystemTime,
};

use hlorank_graph::Digest;

use crate::model::MANIFEST_FILE;

/// The versions of each name that have a manifest, and a fingerprint of each: it changes when one of its files does.
pub(super) type Found = BTreeMap<String, BTreeMap<u64, Digest>>;

/// Looks through `NAME/VERSION` for manifests. Folders that are no version numbers are no versions.
///
/// An error means that nothing was learnt: what is on a disk that cannot be read is not gone.
pub(super) fn look(folder: &Path) -> io::Result<Found> {
    let mut found = Found::new();
    for (name, path) in subfolders(fs::read_dir(folder)?)? {
        let mut versions = BTreeMap::new();
        for (version, path) in present(fs::read_dir(&path))?.map_or_else(|| Ok(Vec::new()), subfolders)? {
            if let Some(version) = version_number(&version)
                && path.join(MANIFEST_FILE).is_file()
            {
                versions.insert(version, fingerprint(&path)?);
            }
        }
        found.insert(name, versions);
    }
    Ok(found)
}

/// The folder of a version.
pub(super) fn version_folder(folder: &Path, name: &str, version: u64) -> PathBuf {
    folder.join(name).join(version.to_string())
}

/// 1 or more, written in the one way.
fn version_number(name: &str) -> Option<u64> {
    name.parse().ok().filter(|version: &u64| *version > 0 && version.to_string() == name)
}

/// Name and path of each folder in a folder.
fn subfolders(entries: fs::ReadDir) -> io::Result<Vec<(String, PathBuf)>> {
    let mut folders = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.is_dir()
            && let Some(name) = path.file_name().and_then(|name| name.to_str())
        {
            folders.push((name.to_owned(), path));
        }
    }
    Ok(folders)
}

/// Digest of the names, sizes and times of a folder's files.
fn fingerprint(folder: &Path) -> io::Result<Digest> {
    let mut files = Vec::new();
    for entry in present(fs::read_dir(folder))?.into_iter().flatten() {
        let path = entry?.path();
        if let Some(file) = present(fs::metadata(&path))? {
            let modified = file.modified()?.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            files.push((path, file.len(), modified));
        }
    }
    files.sort();
    Ok(Digest(*blake3::hash(format!("{files:?}").as_bytes()).as_bytes()))
}

/// `None` for what is not there.
fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
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
        look(folder).unwrap()["m"].keys().copied().collect()
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
        let before = look(folder.path()).unwrap();
        assert_eq!(look(folder.path()).unwrap(), before);
        fs::write(folder.path().join("m/1/encoder.onnx"), "half").unwrap();
        assert_ne!(look(folder.path()).unwrap(), before);
    }

    #[test]
    fn a_model_folder_that_is_gone_is_an_error() {
        let folder = registry(&["m/1"]);
        let path = folder.path().to_owned();
        assert!(look(&path).is_ok());
        drop(folder);
        assert!(look(&path).is_err());
    }
}
