use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use hlorank_graph::{Digest, shortened};

use super::{
    overlooked::{OverlookReason, OverlookedPath, is_model_name},
    policy_error::FILE_NAME,
};
use crate::model::MANIFEST_FILE;

/// The result of a scan of a model folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderScan {
    /// The versions by model name, or `None` for a folder that could not be read.
    pub(super) models: BTreeMap<String, Option<FoundVersions>>,
    /// Descriptions of what could not be read, with the causes.
    pub(super) problems: Vec<String>,
    /// What is never loaded, by its path in the folder.
    pub(super) overlooked: BTreeMap<String, OverlookedPath>,
}

/// The versions of a model that have a manifest. Each has a fingerprint, which changes when one of its files does, or
/// `None` if its folder could not be read.
pub(super) type FoundVersions = BTreeMap<u64, Option<Digest>>;

/// Scans `NAME/VERSION` for manifests. What is named otherwise is overlooked, without a word if its name begins with a dot.
///
/// An error says nothing about the versions: those on a disk that cannot be read are not removed.
pub(super) fn scan(folder: &Path) -> io::Result<FolderScan> {
    let mut found = FolderScan::default();
    for entry in entries(folder)? {
        if entry.path.file_name() == Some(OsStr::new(FILE_NAME)) {
            continue;
        }
        if let Some(name) = found.expect(folder, &entry, model_name) {
            let versions = found.versions(folder, &entry.path);
            found.models.insert(name, versions.ok());
        }
    }
    Ok(found)
}

/// Something could not be read, and was added to the problems.
#[derive(Debug, PartialEq, Eq)]
struct ReadFailure;

/// Something in a folder.
struct Entry {
    path: PathBuf,
    kind: EntryKind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    /// A folder, or what could not be examined, so that reading it reports the cause.
    Folder,
    File,
    DanglingLink,
}

impl FolderScan {
    /// Returns the versions in the folder of a model.
    fn versions(&mut self, folder: &Path, model: &Path) -> Result<FoundVersions, ReadFailure> {
        let entries = self.read(model, || entries(model))?;
        if entries.as_ref().is_some_and(Vec::is_empty) {
            self.overlook(folder, model, OverlookReason::NoVersion);
        }
        let mut versions = FoundVersions::new();
        for entry in entries.into_iter().flatten() {
            let Some(version) = self.expect(folder, &entry, version) else {
                continue;
            };
            let fingerprint = self.read(&entry.path, || fingerprint(&entry.path));
            // A version that cannot be read is listed all the same: it is not taken for removed.
            if fingerprint != Ok(None) {
                versions.insert(version, fingerprint.ok().flatten());
            }
        }
        Ok(versions)
    }

    /// Returns what `read` makes of a folder. Otherwise the entry is overlooked.
    fn expect<T>(
        &mut self,
        folder: &Path,
        entry: &Entry,
        read: impl FnOnce(&Path) -> Result<T, OverlookReason>,
    ) -> Option<T> {
        let read = match entry.kind {
            EntryKind::Folder => read(&entry.path),
            EntryKind::File => Err(OverlookReason::File),
            EntryKind::DanglingLink => Err(OverlookReason::DanglingLink),
        };
        read.inspect_err(|why| self.overlook(folder, &entry.path, *why))
            .ok()
    }

    fn overlook(&mut self, folder: &Path, path: &Path, why: OverlookReason) {
        let relative = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
        let shown = shortened(&relative.escape_debug().to_string());
        self.overlooked.insert(
            shown,
            OverlookedPath {
                why,
                fingerprint: fingerprint(path).ok(),
            },
        );
    }

    /// Reads something from a folder. Returns `None` if it was removed in the meantime.
    fn read<T>(
        &mut self,
        path: &Path,
        read: impl FnOnce() -> io::Result<T>,
    ) -> Result<Option<T>, ReadFailure> {
        match read() {
            Ok(value) => Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                self.problems
                    .push(format!("cannot read `{}`: {error}", path.display()));
                Err(ReadFailure)
            }
        }
    }
}

/// Returns the name of the model in a folder.
fn model_name(folder: &Path) -> Result<String, OverlookReason> {
    let name = folder
        .file_name()
        .and_then(OsStr::to_str)
        .filter(|name| is_model_name(name));
    name.map(str::to_owned).ok_or(OverlookReason::ModelName)
}

/// Returns the number of the version in a folder.
fn version(folder: &Path) -> Result<u64, OverlookReason> {
    let name = folder.file_name().and_then(OsStr::to_str);
    let version = name
        .and_then(version_number)
        .ok_or(OverlookReason::VersionName)?;
    let manifest = folder.join(MANIFEST_FILE);
    if is_there(&manifest, fs::Metadata::is_file) {
        Ok(version)
    } else {
        Err(OverlookReason::NoManifest)
    }
}

/// Returns the folder of a version.
pub(super) fn version_folder(folder: &Path, name: &str, version: u64) -> PathBuf {
    folder.join(name).join(version.to_string())
}

/// Parses a version number: 1 or more, without a sign or leading zeros.
fn version_number(name: &str) -> Option<u64> {
    name.parse()
        .ok()
        .filter(|version: &u64| *version > 0 && version.to_string() == name)
}

/// Returns what is in a folder, except names that begin with a dot: they are locks, and what tools keep for themselves.
fn entries(folder: &Path) -> io::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".")
            && let Some(kind) = entry_kind(&entry.path())
        {
            entries.push(Entry {
                path: entry.path(),
                kind,
            });
        }
    }
    Ok(entries)
}

/// Returns the kind of an entry; `None` if it was removed in the meantime.
fn entry_kind(path: &Path) -> Option<EntryKind> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Some(EntryKind::Folder),
        Ok(_) => Some(EntryKind::File),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Some(EntryKind::Folder),
        // The call above follows links. What is left at the path itself is a link to nothing.
        Err(_) => fs::symlink_metadata(path)
            .is_ok()
            .then_some(EntryKind::DanglingLink),
    }
}

/// Returns whether a path exists and is of a kind. The answer is yes if that is unknown, so that reading the path
/// reports the cause.
fn is_there(path: &Path, kind: impl FnOnce(&fs::Metadata) -> bool) -> bool {
    match fs::metadata(path) {
        Ok(found) => kind(&found),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Returns a digest of the names, sizes and modification times of a folder's files; an error for a file.
fn fingerprint(folder: &Path) -> io::Result<Digest> {
    // Contents are not read: every poll computes this, and a version has megabytes.
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // A dangling link counts as a file without size and time.
        let file = fs::metadata(&path)
            .ok()
            .map(|file| (file.len(), file.modified().ok()));
        files.push((path, file));
    }
    // The order in which a folder lists its files is not fixed.
    files.sort();
    Ok(Digest(
        *blake3::hash(format!("{files:?}").as_bytes()).as_bytes(),
    ))
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
        scan(folder).unwrap().models["m"]
            .as_ref()
            .unwrap()
            .keys()
            .copied()
            .collect()
    }

    #[test]
    fn versions_are_numbered_folders_with_a_manifest() {
        let folder = registry(&["m/1", "m/10", "m/2", "m/0", "m/02", "m/old", "m/-3"]);
        fs::create_dir_all(folder.path().join("m/7")).unwrap();
        fs::write(folder.path().join("policy.json"), "{}").unwrap();
        assert_eq!(versions(folder.path()), [1, 2, 10]);
    }

    #[test]
    fn what_is_never_loaded_is_found_with_the_reason() {
        let folder = registry(&[
            "m/1",
            "m/000006",
            "m/v1",
            "m/latest",
            "m/0",
            "a\nb/1",
            "a\u{202e}b/1",
            "m/99999999999999999999",
            ".hidden/1",
        ]);
        let path = |name: &str| folder.path().join(name);
        for name in ["m/7", "ranker/1", "empty"] {
            fs::create_dir_all(path(name)).unwrap();
        }
        for name in [
            "ranker/1/model.onnx",
            "loose.onnx",
            "m/loose.onnx",
            "policy.json",
        ] {
            fs::write(path(name), "").unwrap();
        }
        std::os::unix::fs::symlink("nowhere", path("m/8")).unwrap();
        let found = scan(folder.path()).unwrap();
        assert_eq!(
            found.models.keys().collect::<Vec<_>>(),
            ["empty", "m", "ranker"]
        );
        let overlooked = found
            .overlooked
            .iter()
            .map(|(path, seen)| (path.as_str(), seen.why));
        let expected = [
            ("a\\nb", OverlookReason::ModelName),
            ("a\\u{202e}b", OverlookReason::ModelName),
            ("empty", OverlookReason::NoVersion),
            ("loose.onnx", OverlookReason::File),
            ("m/0", OverlookReason::VersionName),
            ("m/000006", OverlookReason::VersionName),
            ("m/7", OverlookReason::NoManifest),
            ("m/8", OverlookReason::DanglingLink),
            ("m/99999999999999999999", OverlookReason::VersionName),
            ("m/latest", OverlookReason::VersionName),
            ("m/loose.onnx", OverlookReason::File),
            ("m/v1", OverlookReason::VersionName),
            ("ranker/1", OverlookReason::NoManifest),
        ];
        assert_eq!(overlooked.collect::<Vec<_>>(), expected);
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
        assert!(
            found.problems.len() == 1 && found.problems[0].contains("/n`"),
            "{:?}",
            found.problems
        );
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
