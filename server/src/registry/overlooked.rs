//! What is in the model folder and will never be loaded.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use hlorank_graph::{Digest, is_printable};

/// Why something in the model folder is never loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverlookReason {
    /// A file where a folder is expected.
    File,
    /// A link to nothing.
    DanglingLink,
    /// The name of a model has letters that cannot be printed, or too many letters.
    ModelName,
    /// The name of a version is no version number.
    VersionName,
    /// The folder of a version has no manifest.
    NoManifest,
    /// The folder of a model is empty.
    NoVersion,
}

/// A path in the model folder that is never loaded, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredPath {
    /// `NAME` or `NAME/VERSION`, with letters that cannot be printed as escapes.
    pub path: String,
    /// What is wrong, and what to do about it.
    pub reason: String,
}

/// What a scan found of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OverlookedPath {
    pub(super) why: OverlookReason,
    /// Changes when one of its files does; `None` if they could not be read.
    pub(super) fingerprint: Option<Digest>,
}

/// Maximum number of letters in the name of a model.
pub(super) const MAX_NAME: usize = 128;

/// Maximum number of paths that are remembered. Those of a folder that is no model folder have no end.
const MAX_PATHS: usize = 100;

/// The paths that scans found.
#[derive(Default)]
pub(super) struct OverlookedPaths(BTreeMap<String, SeenPath>);

/// A path, and since when it has not changed.
struct SeenPath {
    found: OverlookedPath,
    since: Instant,
}

impl fmt::Display for OverlookReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => formatter.write_str("it is a file; a version is a folder NAME/VERSION with a manifest.json"),
            Self::DanglingLink => formatter.write_str("it is a link that leads nowhere; mend or remove it"),
            Self::ModelName => write!(
                formatter,
                "the name of a model has 1 to {MAX_NAME} letters in UTF-8, and none that controls a terminal or the direction \
                 of text; rename the folder"
            ),
            Self::VersionName => formatter
                .write_str("a version is a whole number from 1 without leading zeros, such as 6; rename the folder"),
            Self::NoManifest => formatter.write_str(
                "it has no manifest.json; publish a version with its manifest, which models/artifacts.md describes",
            ),
            Self::NoVersion => formatter.write_str("it has no version; a version is a folder NAME/VERSION"),
        }
    }
}

impl OverlookedPaths {
    /// Notes what a scan found, and returns what has not changed for as long as `settled`: a folder that is being copied is
    /// not complete yet.
    pub(super) fn update(
        &mut self,
        found: BTreeMap<String, OverlookedPath>,
        settled: Duration,
        now: Instant,
    ) -> Vec<IgnoredPath> {
        let before = std::mem::take(&mut self.0);
        for (path, found) in found.into_iter().take(MAX_PATHS) {
            let unchanged = before.get(&path).filter(|before| before.found == found);
            let since = unchanged.map_or(now, |before| before.since);
            self.0.insert(path, SeenPath { found, since });
        }
        let is_settled = |seen: &SeenPath| now.duration_since(seen.since) >= settled;
        let ignored = self.0.iter().filter(|(_, seen)| is_settled(seen));
        ignored
            .map(|(path, seen)| IgnoredPath {
                path: path.clone(),
                reason: seen.found.why.to_string(),
            })
            .collect()
    }
}

/// Returns whether a name may be that of a model: it can be printed as it is.
pub(super) fn is_model_name(name: &str) -> bool {
    name.chars().count() <= MAX_NAME && name.chars().all(is_printable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_mentioned_once_it_has_not_changed_for_a_while() {
        let start = Instant::now();
        let settled = Duration::from_secs(20);
        let mut paths = OverlookedPaths::default();
        let mut seen = |files: u8, seconds: u64| {
            let seen = OverlookedPath {
                why: OverlookReason::NoManifest,
                fingerprint: Some(Digest([files; 32])),
            };
            let found = BTreeMap::from([("m/1".to_owned(), seen)]);
            paths
                .update(found, settled, start + Duration::from_secs(seconds))
                .len()
        };
        assert_eq!(
            [seen(1, 0), seen(1, 19), seen(2, 20), seen(2, 39)],
            [0; 4],
            "its files arrive"
        );
        assert_eq!([seen(2, 40), seen(2, 50)], [1; 2]);
    }

    #[test]
    fn a_name_that_cannot_be_printed_is_no_model() {
        for name in ["tile-iree-cpu", "größe", "模型", "a b", "a.b"] {
            assert!(is_model_name(name), "{name}");
        }
        let long = "x".repeat(MAX_NAME + 1);
        for name in [
            "a\nb",
            "a\u{1b}[2J",
            "a\u{202e}b",
            "a\u{2066}b",
            "a\u{85}b",
            "a\u{200b}b",
            long.as_str(),
        ] {
            assert!(!is_model_name(name), "{name:?}");
        }
    }
}
