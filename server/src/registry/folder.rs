use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use hlorank_graph::{Digest, is_printable, shortened};

use super::policy::FILE_NAME;
use crate::model::MANIFEST_FILE;

/// The result of a scan of a model folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FolderScan {
    /// The versions by model name, or `None` for a folder that could not be read.
    pub(super) models: BTreeMap<String, Option<FoundVersions>>,
    /// Descriptions of what could not be read, with the causes, and of what has the place of a version and no name of one.
    pub(super) problems: Vec<String>,
    /// Number of paths that can never become a version.
    misplaced: usize,
}

/// The versions of a model that have a manifest. Each has a fingerprint, which changes when one of its files does, or
/// `None` if its folder could not be read.
pub(super) type FoundVersions = BTreeMap<u64, Option<Digest>>;

/// Maximum number of letters in the name of a model.
const MAX_NAME: usize = 128;

/// Maximum number of misplaced paths that are described. Those of a folder that is no model folder have no end.
const MAX_MISPLACED: usize = 20;

/// Scans `NAME/VERSION` for manifests. A folder without a manifest is not a version yet. A path whose name begins with a dot is
/// left out; any other that can never become a version is a problem.
///
/// An error says nothing about the versions: those on a disk that cannot be read are not removed.
pub(super) fn scan(folder: &Path) -> io::Result<FolderScan> {
    let mut found = FolderScan::default();
    for path in entries(folder)? {
        if path.file_name() == Some(OsStr::new(FILE_NAME)) {
            continue;
        }
        if let Some(name) = found.expect(folder, &path, model_name) {
            let versions = found.versions(folder, &path);
            found.models.insert(name, versions.ok());
        }
    }
    Ok(found)
}

/// Something could not be read, and was added to the problems.
#[derive(Debug, PartialEq, Eq)]
struct ReadFailure;

const MODEL_NAME: &str = "the name of a model has 1 to 128 letters in UTF-8, and none that controls a terminal or the direction of \
                          text; rename the folder";

impl FolderScan {
    /// Returns the versions in the folder of a model.
    fn versions(&mut self, folder: &Path, model: &Path) -> Result<FoundVersions, ReadFailure> {
        let entries = self.read(model, entries)?;
        let mut versions = FoundVersions::new();
        for path in entries.into_iter().flatten() {
            let Some(version) = self.expect(folder, &path, version_number) else {
                continue;
            };
            // The manifest is written last: a folder without one is still being copied. If that is
            // unknown, reading the folder reports the cause.
            let is_complete = match fs::metadata(path.join(MANIFEST_FILE)) {
                Ok(found) => found.is_file(),
                Err(error) => error.kind() != io::ErrorKind::NotFound,
            };
            if !is_complete {
                continue;
            }
            match self.read(&path, fingerprint) {
                Ok(None) => {}
                // A version that cannot be read is listed all the same: it is not taken for removed.
                fingerprint => {
                    versions.insert(version, fingerprint.ok().flatten());
                }
            }
        }
        Ok(versions)
    }

    /// Returns what a folder's name says. Whatever has no such name, or is no folder, is a problem.
    fn expect<T>(
        &mut self,
        folder: &Path,
        path: &Path,
        parse: impl FnOnce(&str) -> Result<T, &'static str>,
    ) -> Option<T> {
        let parsed = match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                Err("it is a file; a version is a folder NAME/VERSION with a manifest.json")
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                // The call above follows links. What is left at the path itself is a link to nothing;
                // otherwise it was removed in the meantime.
                fs::symlink_metadata(path).ok()?;
                Err("it is a link that leads nowhere; mend or remove it")
            }
            // What cannot be examined may be a folder: reading it reports the cause.
            _ => {
                let name = path.file_name().and_then(OsStr::to_str);
                name.ok_or(MODEL_NAME).and_then(parse)
            }
        };
        let why = match parsed {
            Ok(meaning) => return Some(meaning),
            Err(why) => why,
        };
        if self.misplaced < MAX_MISPLACED {
            self.misplaced += 1;
            let relative = path.strip_prefix(folder).unwrap_or(path).to_string_lossy();
            let shown = shortened(&relative.escape_debug().to_string());
            self.problems
                .push(format!("`{shown}` is never loaded: {why}"));
        }
        None
    }

    /// Reads something from a folder. Returns `None` if it was removed in the meantime.
    fn read<T>(
        &mut self,
        path: &Path,
        read: impl FnOnce(&Path) -> io::Result<T>,
    ) -> Result<Option<T>, ReadFailure> {
        match read(path) {
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

/// Returns the folder of a version.
pub(super) fn version_folder(folder: &Path, name: &str, version: u64) -> PathBuf {
    folder.join(name).join(version.to_string())
}

/// Returns the name of the model in a folder of this name: it can be printed as it is.
fn model_name(name: &str) -> Result<String, &'static str> {
    let is_name = name.chars().count() <= MAX_NAME && name.chars().all(is_printable);
    is_name.then(|| name.to_owned()).ok_or(MODEL_NAME)
}

/// Parses a version number: 1 or more, without a sign or leading zeros.
fn version_number(name: &str) -> Result<u64, &'static str> {
    let number = name.parse().ok();
    let number = number.filter(|version: &u64| *version > 0 && version.to_string() == name);
    number.ok_or(
        "a version is a whole number from 1 without leading zeros, such as 6; rename the folder",
    )
}

/// Returns what is in a folder, except names that begin with a dot: they are locks, and what tools keep for themselves.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_name().as_encoded_bytes().starts_with(b".") {
            entries.push(entry.path());
        }
    }
    Ok(entries)
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
    fn what_can_never_become_a_version_is_a_problem_with_the_reason() {
        let long = "x".repeat(MAX_NAME + 1);
        let too_long = format!("{long}/1");
        let folder = registry(&[
            "m/1",
            "m/000006",
            "m/v1",
            "m/0",
            "a\nb/1",
            "a\u{202e}b/1",
            "größe/1",
            "m/99999999999999999999",
            ".hidden/1",
            &too_long,
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
            ["empty", "größe", "m", "ranker"]
        );
        let mut problems = found.problems;
        problems.sort();
        let expected = [
            (r"a\nb", "letters"),
            (r"a\u{202e}b", "letters"),
            ("loose.onnx", "a file"),
            ("m/000006", "without leading zeros"),
            ("m/0", "whole number"),
            ("m/8", "leads nowhere"),
            ("m/99999999999999999999", "whole number"),
            ("m/loose.onnx", "a file"),
            ("m/v1", "whole number"),
            ("xxx", "letters"),
        ];
        assert_eq!(problems.len(), expected.len(), "{problems:?}");
        for (problem, (path, reason)) in problems.iter().zip(expected) {
            assert!(
                problem.starts_with(&format!("`{path}")) && problem.contains(reason),
                "{problem}"
            );
        }
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
}
