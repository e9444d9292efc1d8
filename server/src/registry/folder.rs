use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use hlorank_graph::Digest;

use crate::model::MANIFEST_FILE;

/// What was seen of a model folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    /// By name; `None` for a folder that could not be read.
    pub(super) models: BTreeMap<String, Option<FoundVersions>>,
    /// What could not be read, and why.
    pub(super) problems: Vec<String>,
}

/// The versions of a name that have a manifest, and a fingerprint of each, which changes when one of its files does;
/// `None` for a folder that could not be read.
pub(super) type FoundVersions = BTreeMap<u64, Option<Digest>>;

/// Looks through `NAME/VERSION` for manifests. Folders that are no version numbers are no versions.
///
/// An error means that nothing was learnt: what is on a disk that cannot be read is not gone.
pub(super) fn look(folder: &Path) -> io::Result<Found> {
    let mut found = Found::default();
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

/// It is among the problems.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

impl Found {
    /// Reads something of a folder; `None` where it vanished meanwhile.
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

/// The folders of a name that are versions.
fn versions(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let versions = subfolders(folder)?.into_iter().filter_map(|(name, path)| {
        let version = version_number(&name)?;
        is_there(&path.join(MANIFEST_FILE), fs::Metadata::is_file).then_some((version, path))
    });
    Ok(versions.collect())
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

/// Whether there is something of a kind at a path; yes where that cannot be told, so that reading it tells why.
fn is_there(path: &Path, kind: impl FnOnce(&fs::Metadata) -> bool) -> bool {
    match fs::metadata(path) {
        Ok(found) => kind(&found),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Digest of the names, sizes and times of a folder's files.
fn fingerprint(folder: &Path) -> io::Result<Digest> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A link that leads nowhere is a file without size and time.
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
        look(folder).unwrap().models["m"].as_ref().unwrap().keys().copied().collect()
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
    fn a_folder_that_cannot_be_read_is_told_and_the_others_are_found() {
        let folder = registry(&["m/1"]);
        // A loop of links cannot be read by anybody.
        std::os::unix::fs::symlink("n", folder.path().join("n")).unwrap();
        let found = look(folder.path()).unwrap();
        assert!(found.models["m"].is_some() && found.models["n"].is_none());
        assert!(found.problems.len() == 1 && found.problems[0].contains("/n`"), "{:?}", found.problems);
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
