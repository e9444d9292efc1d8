//! `hlorank xla-cache`: has jobs use the same results of XLA's autotuning.
//!
//! XLA keeps a file for each fusion, whose name stands for the fusion and the device: `HASH.textproto`, or `DEVICE/HASH.pb` and
//! `DEVICE/VERSION/HASH.pb` in its new format. The path in the folder is the key of a decision, and the content is its value. The hosts
//! of a job exchange their results in memory only, and each writes a part of the files, so all of them push. No file is replaced,
//! because a job may have read it.

use std::{
    collections::HashMap,
    fmt::{self, Display, Formatter},
    fs::{self, Permissions},
    io::{
        self,
        ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput},
        Write as _,
    },
    os::unix::fs::PermissionsExt as _,
    path::{Component, Path, PathBuf},
};

use clap::{Args, Subcommand};
use hlorank_client::{
    Client,
    v1::{DecisionKey, ListDecisionsRequest, Proposal},
};
use prost::{Message as _, bytes::Bytes};
use serde::Serialize;

use crate::{
    decisions::{listed, propose},
    error::CommandError,
    output::{Format, counted, grouped},
    server::Server,
};

#[derive(Debug, Subcommand)]
pub(crate) enum XlaCacheCommand {
    /// Write what is decided into the folder, before a job
    Stage(CacheJob),
    /// Propose what is new in the folder, after a job, on each of its hosts
    Push(CacheJob),
}

/// What a job uses.
#[derive(Debug, Args)]
pub(crate) struct CacheJob {
    /// Folder that the flag `--xla_gpu_per_fusion_autotune_cache_dir` of XLA names
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Target, such as device=H100;xla=0.12;cuda=13.2
    ///
    /// XLA's names lack its own version and that of CUDA.
    #[arg(long, value_name = "PARTS")]
    target: String,
    #[command(flatten)]
    server: Server,
}

/// What became of the files.
#[derive(Debug, Default, Serialize)]
struct CacheReport {
    #[serde(skip)]
    verb: &'static str,
    new: usize,
    known: usize,
    different: usize,
    unreadable: usize,
}

/// Maximum length of a key.
const MAX_KEY_BYTES: usize = 256;

/// Maximum length of a value.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Where XLA writes files that it then renames.
const UNFINISHED: &str = "tmp";

const NAMESPACE: &str = "xla";

impl XlaCacheCommand {
    pub(crate) async fn run(self, format: Format) -> Result<(), CommandError> {
        let report = match self {
            Self::Stage(job) => job.stage().await?,
            Self::Push(job) => job.push().await?,
        };
        let warnings = [
            (
                report.different,
                "not as decided: delete and stage them again to use the decisions",
            ),
            (
                report.unreadable,
                "skipped: no result of XLA, or longer than 64 KiB",
            ),
        ];
        for (files, problem) in warnings.iter().filter(|(files, _)| *files > 0) {
            format.print_warning(&format!("{} {problem}", counted(*files, "file")));
        }
        Ok(format.print(&report)?)
    }
}

impl CacheJob {
    async fn stage(&self) -> Result<CacheReport, CommandError> {
        let mut report = CacheReport::new("written");
        for (key, value) in self.decided(&self.server.connect().await?).await? {
            let Some(path) = entry(&key, &value) else {
                report.unreadable += 1;
                continue;
            };
            let path = self.folder.join(path);
            match write_new(&path, &value) {
                Ok(()) => report.new += 1,
                Err(error) if error.kind() == AlreadyExists => {
                    report.add_known(fs::read(&path).is_ok_and(|own| own == value));
                }
                // The file system has no such names.
                Err(error) if matches!(error.kind(), InvalidFilename | InvalidInput) => {
                    report.unreadable += 1;
                }
                Err(error) => return Err(CommandError::written(&path, error)),
            }
        }
        Ok(report)
    }

    async fn push(&self) -> Result<CacheReport, CommandError> {
        let mut report = CacheReport::new("proposed");
        let paths = files(&self.folder);
        let paths = paths.map_err(|error| CommandError::input(self.folder.display(), error))?;
        let client = self.server.connect().await?;
        let decided = self.decided(&client).await?;
        for path in paths {
            let key = path.as_os_str().as_encoded_bytes();
            let value = fs::read(self.folder.join(&path));
            let value = value.map_err(|error| CommandError::input(path.display(), error))?;
            let value = Bytes::from(value);
            if entry(key, &value).is_none() {
                report.unreadable += 1;
                continue;
            }
            if let Some(decided) = decided.get(key) {
                report.add_known(*decided == value);
                continue;
            }
            let key = DecisionKey {
                namespace: NAMESPACE.to_owned(),
                key: key.to_vec().into(),
                target: self.target.clone(),
            };
            let proposal = Proposal {
                value: value.clone(),
                ..Proposal::default()
            };
            if propose(&client, key, proposal).await?.value == value {
                report.new += 1;
            } else {
                report.different += 1;
            }
        }
        Ok(report)
    }

    /// Returns the values that are decided for the target by their keys.
    async fn decided(&self, client: &Client) -> Result<HashMap<Bytes, Bytes>, CommandError> {
        let request = ListDecisionsRequest {
            namespace: NAMESPACE.to_owned(),
            target: self.target.clone(),
            ..ListDecisionsRequest::default()
        };
        let decisions = listed(client, request).await?.into_iter();
        let pairs = decisions.map(|each| (each.key.unwrap_or_default().key, each.value));
        Ok(pairs.collect())
    }
}

impl CacheReport {
    fn new(verb: &'static str) -> Self {
        Self {
            verb,
            ..Self::default()
        }
    }

    fn add_known(&mut self, is_equal: bool) {
        self.known += usize::from(is_equal);
        self.different += usize::from(!is_equal);
    }
}

/// Returns the path of a key, if it is one of XLA's files and the value one of its results.
fn entry<'a>(key: &'a [u8], value: &[u8]) -> Option<&'a Path> {
    let path = Path::new(std::str::from_utf8(key).ok()?);
    // A key comes from a server, and must not name a file outside the folder.
    let is_inside = path
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    let depth = path.components().count();
    let is_readable = match path.extension()?.to_str()? {
        "textproto" => depth == 1 && std::str::from_utf8(value).is_ok(),
        // The fields of a message, whatever they mean.
        "pb" => (2..=3).contains(&depth) && <()>::decode(value).is_ok(),
        _ => false,
    };
    let is_short = key.len() <= MAX_KEY_BYTES && value.len() <= MAX_VALUE_BYTES;
    let is_entry = is_inside && is_readable && is_short && !value.is_empty();
    (is_entry && !path.starts_with(UNFINISHED)).then_some(path)
}

/// Lists the files of a folder that look like XLA's, relative to it.
fn files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        for file in fs::read_dir(folder.join(&inner))? {
            let path = inner.join(file?.file_name());
            let is_deep = path.components().count() > 2;
            if !folder.join(&path).is_dir() {
                paths.push(path);
            } else if !is_deep && path != Path::new(UNFINISHED) {
                folders.push(path);
            }
        }
    }
    // XLA's names are text, and other files are none of its.
    paths.retain(|path| {
        path.extension()
            .is_some_and(|kind| kind == "textproto" || kind == "pb")
    });
    Ok(paths)
}

/// Writes a file that does not exist yet. Nobody sees a part of it.
fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let readable = Permissions::from_mode(0o644);
    let mut file = tempfile::Builder::new()
        .permissions(readable)
        .tempfile_in(folder)?;
    file.write_all(content)?;
    file.persist_noclobber(path)?;
    Ok(())
}

impl Display for CacheReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let new = counted(self.new, "file");
        writeln!(
            formatter,
            "{new} {}, {} known.",
            self.verb,
            grouped(self.known)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_xla_inside_the_folder_are_entries() {
        for key in ["a_b-.textproto", "H100/a.pb", "H100/2/a.pb"] {
            assert!(entry(key.as_bytes(), b"\x0a\x01a").is_some(), "{key}");
        }
        for key in [
            "a.pb",
            "../a.pb",
            "/a.textproto",
            "a/../../b.pb",
            "a/b/c/d.pb",
            "tmp/a.pb",
            "a",
            "",
        ] {
            assert!(entry(key.as_bytes(), b"\x0a\x01a").is_none(), "{key}");
        }
    }

    #[test]
    fn a_torn_message_is_no_result() {
        assert!(entry(b"H100/a.pb", b"\x0a\x05a").is_none());
        assert!(entry(b"a.textproto", b"\xff").is_none());
        assert!(entry(b"a.textproto", b"").is_none());
    }
}
