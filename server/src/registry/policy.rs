use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Read as _, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use rustix::system::uname;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

/// Which version of a model should serve. By default, the newest valid version does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The version that serves even if there are newer ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<u64>,
    /// A second version that serves a share of the graphs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub canary: Option<CanarySplit>,
}

/// The share of graphs that a canary serves. A graph's hash decides whether it is one of them, so one tuning run sees
/// one model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanarySplit {
    /// The version of the canary.
    pub version: u64,
    /// Percentage of all graphs, 1 to 100.
    pub percent: u8,
}

/// The policies of all models by name, which `policy.json` in the model folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Policies(BTreeMap<String, Policy>);

/// How many times a change is made anew because the file was changed meanwhile.
const ATTEMPTS: usize = 5;

const EXAMPLE: &str = r#"{"NAME": {"pinned": 2, "canary": {"version": 3, "percent": 10}}}"#;

impl Policies {
    /// Reads the policies of a model folder. A missing file means that there are none.
    pub(super) fn read(folder: &Path) -> Result<Self, PolicyError> {
        Self::parse(folder, read(folder)?.as_deref())
    }

    fn parse(folder: &Path, json: Option<&[u8]>) -> Result<Self, PolicyError> {
        let Some(json) = json else {
            return Ok(Self::default());
        };
        let malformed = |detail: String| {
            let path = shown_path(folder);
            PolicyError(format!(
                "`{path}` is not a valid policy: {detail}; an example is {EXAMPLE}"
            ))
        };
        let policies = serde_json::from_slice(json);
        let policies: BTreeMap<String, Policy> =
            policies.map_err(|error| malformed(error.to_string()))?;
        for (model, Policy { pinned, canary }) in &policies {
            let percent = canary.map_or(1, |split| split.percent);
            if !(1..=100).contains(&percent) {
                return Err(malformed(format!(
                    "{model}: `percent` is {percent}, expected 1 to 100"
                )));
            }
            if *pinned == Some(0) || canary.is_some_and(|split| split.version == 0) {
                return Err(malformed(format!("{model}: version numbers start at 1")));
            }
        }
        Ok(Self(policies))
    }

    /// Returns the names of the models that have a policy.
    pub(super) fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }

    /// Returns the policy of a model.
    pub(super) fn get(&self, name: &str) -> Policy {
        self.0.get(name).copied().unwrap_or_default()
    }

    /// Changes the policy of one model in the file, and keeps those of the other models. The change is made anew if the
    /// file was changed by hand, or by a server whose lock this machine does not see.
    pub(super) fn change<E: From<PolicyError>>(
        lock: &PolicyLock,
        name: &str,
        change: impl Fn(Policy) -> Result<Policy, E>,
    ) -> Result<Self, E> {
        let folder = lock.folder();
        for _ in 0..ATTEMPTS {
            let before = read(folder)?;
            let mut policies = Self::parse(folder, before.as_deref())?;
            match change(policies.get(name))? {
                none if none == Policy::default() => policies.0.remove(name),
                policy => policies.0.insert(name.to_owned(), policy),
            };
            let json = serde_json::to_vec_pretty(&policies.0);
            let mut json = json.map_err(|error| PolicyError(error.to_string()))?;
            json.push(b'\n');
            if lock.replace(before.as_deref(), &json)? {
                return Ok(policies);
            }
        }
        let path = shown_path(folder);
        Err(PolicyError(format!(
            "`{path}` was changed while this change was written, so the policy was not changed; try again"
        ))
        .into())
    }
}

/// Why policies could not be read or written: what is wrong, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PolicyError(pub(super) String);

/// The right to change the policies of a model folder. One change at a time has it, over all processes that use the
/// folder; it ends when this is dropped, or when the process dies.
#[derive(Debug)]
pub(super) struct PolicyLock {
    folder: PathBuf,
    _file: File,
}

/// Name of the file in the model folder.
pub(super) const FILE_NAME: &str = "policy.json";

/// The lock is a file of its own, because each change replaces `policy.json`.
const LOCK_NAME: &str = ".policy.lock";

/// Everybody may read the file, as other servers follow it too.
const MODE: u32 = 0o644;

/// Maximum time to wait for the lock. A change holds it for milliseconds.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Maximum size of the file in bytes, as that of a manifest.
const MAX_BYTES: u64 = 1 << 20;

/// Interval at which the lock is tried.
const INTERVAL: Duration = Duration::from_millis(5);

/// Returns the path of the file as errors show it.
fn shown_path(folder: &Path) -> String {
    folder.join(FILE_NAME).display().to_string()
}

/// Returns the content of the file; `None` if there is no file.
pub(super) fn read(folder: &Path) -> Result<Option<Vec<u8>>, PolicyError> {
    let mut content = Vec::new();
    let opened = File::open(folder.join(FILE_NAME));
    // The file may grow while it is read.
    let read = opened.and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut content));
    match read {
        Ok(bytes) if bytes as u64 > MAX_BYTES => Err(PolicyError(format!(
            "`{}` has more than {MAX_BYTES} bytes",
            shown_path(folder)
        ))),
        Ok(_) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(PolicyError(format!(
            "cannot read `{}`: {error}",
            shown_path(folder)
        ))),
    }
}

impl PolicyLock {
    /// Waits until no other change has the lock.
    pub(super) fn acquire(folder: &Path) -> Result<Self, PolicyError> {
        Self::acquire_within(folder, MAX_WAIT)
    }

    fn acquire_within(folder: &Path, wait: Duration) -> Result<Self, PolicyError> {
        let path = folder.join(LOCK_NAME);
        let mut file = open(&path).map_err(|error| unwritable(folder, &error))?;
        let started = Instant::now();
        // The system has no call that waits for a lock and gives up after some time.
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(unwritable(folder, &error)),
                Err(TryLockError::WouldBlock) if started.elapsed() < wait => {
                    thread::sleep(INTERVAL);
                }
                Err(TryLockError::WouldBlock) => {
                    let holder = fs::read_to_string(&path).unwrap_or_default();
                    let holder = match holder.as_str() {
                        "" => "another process",
                        holder => holder,
                    };
                    return Err(PolicyError(format!(
                        "{holder} has held the lock `{}` for {wait:?}, so the policy was not changed; end that process \
                         if it hangs, and try again",
                        path.display()
                    )));
                }
            }
        }
        // Only an error message shows it.
        let _ = file.set_len(0).and_then(|()| {
            let host = uname();
            let host = host.nodename().to_string_lossy();
            write!(file, "process {} on {host}", process::id())
        });
        Ok(Self {
            folder: folder.to_owned(),
            _file: file,
        })
    }

    /// The model folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Replaces the file atomically: a server that reads it sees the old one or the new one. Returns whether the file
    /// still had the content `before`; otherwise it stays as it is.
    pub(super) fn replace(
        &self,
        before: Option<&[u8]>,
        content: &[u8],
    ) -> Result<bool, PolicyError> {
        let folder = &self.folder;
        let unwritable = |error: io::Error| unwritable(folder, &error);
        let write = || {
            // The new file replaces the old one by a rename, which needs both in one file system.
            let mut new = NamedTempFile::new_in(folder)?;
            new.write_all(content)?;
            // Without this, the name could reach the disk before the content, and a crash between
            // the two would leave an empty file.
            new.as_file().sync_all()?;
            fs::set_permissions(new.path(), Permissions::from_mode(MODE))?;
            Ok(new)
        };
        let new = write().map_err(unwritable)?;
        // Others can still write between this comparison and the rename if they take no lock: no
        // system call does both.
        if read(folder)?.as_deref() != before {
            return Ok(false);
        }
        let renamed = new.persist(folder.join(FILE_NAME));
        renamed.map_err(|error| unwritable(error.error))?;
        Ok(true)
    }
}

/// Opens the file of the lock, or creates it. A file of another user may be read-only.
fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    match options.open(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            File::open(path).map_err(|_| error)
        }
        opened => opened,
    }
}

fn unwritable(folder: &Path, error: &io::Error) -> PolicyError {
    PolicyError(format!(
        "cannot write `{}`: {error}; the server saves pins and canaries there, so it needs write permission",
        shown_path(folder)
    ))
}

#[cfg(test)]
impl Policy {
    pub(super) fn of_pin(version: u64) -> Self {
        Self {
            pinned: Some(version),
            canary: None,
        }
    }

    /// The same beside a canary that serves ten percent.
    pub(super) fn with_canary(self, version: u64) -> Self {
        let percent = 10;
        Self {
            canary: Some(CanarySplit { version, percent }),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{FILE_NAME, *};

    #[test]
    fn a_file_of_policies_may_have_as_many_bytes_as_allowed_and_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::create(folder.path().join(FILE_NAME)).unwrap();
        file.set_len(MAX_BYTES).unwrap();
        assert!(super::read(folder.path()).is_ok());
        // As large as the file system allows, without a block of it.
        file.set_len(1 << 40).unwrap();
        let error = super::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("more than 1048576 bytes"), "{error}");
    }

    #[test]
    fn policies_that_cannot_be_read_are_not_absent() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join(FILE_NAME)).unwrap();
        let error = Policies::read(folder.path()).unwrap_err().to_string();
        assert!(error.contains("cannot read"), "{error}");
    }

    #[test]
    fn a_written_policy_is_read_and_other_models_keep_theirs() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Policies::read(folder.path()).unwrap(), Policies::default());
        let pinned = Policy::of_pin(2).with_canary(3);
        let set = |name: &str, policy: Policy| {
            let lock = PolicyLock::acquire(folder.path()).unwrap();
            Policies::change(&lock, name, |_| Ok::<_, PolicyError>(policy)).unwrap()
        };
        set("a", pinned);
        set("b", Policy::of_pin(7));
        let policies = Policies::read(folder.path()).unwrap();
        assert_eq!(
            (policies.get("a"), policies.get("b").pinned),
            (pinned, Some(7))
        );
        assert_eq!(policies.get("c"), Policy::default());

        set("a", Policy::default());
        let json = fs::read_to_string(folder.path().join(FILE_NAME)).unwrap();
        assert!(!json.contains("\"a\"") && json.contains("\"b\""), "{json}");
    }

    #[test]
    fn a_change_by_hand_is_kept_although_it_takes_no_lock() {
        let folder = tempfile::tempdir().unwrap();
        let lock = PolicyLock::acquire(folder.path()).unwrap();
        let pinned = Policy::of_pin(2);
        let by_hand = |content: &str| fs::write(folder.path().join(FILE_NAME), content).unwrap();
        let changes = std::cell::Cell::new(0);
        let policies = Policies::change(&lock, "a", |_| {
            if changes.replace(changes.get() + 1) == 0 {
                by_hand(r#"{"b": {"pinned": 7}}"#);
            }
            Ok::<_, PolicyError>(pinned)
        });
        assert_eq!(
            (policies.unwrap().get("b").pinned, changes.get()),
            (Some(7), 2)
        );

        let changing = Policies::change(&lock, "a", |_| {
            changes.set(changes.get() + 1);
            by_hand(&format!(r#"{{"b": {{"pinned": {}}}}}"#, changes.get()));
            Ok::<_, PolicyError>(pinned)
        });
        let error = changing.unwrap_err().to_string();
        assert!(error.contains("was changed while this change"), "{error}");
    }

    #[test]
    fn an_invalid_policy_file_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        for wrong in [
            "{",
            r#"{"a": {"pined": 2}}"#,
            r#"{"a": {"pinned": 0}}"#,
            r#"{"a": {"canary": {"version": 2, "percent": 101}}}"#,
        ] {
            fs::write(folder.path().join(FILE_NAME), wrong).unwrap();
            let error = Policies::read(folder.path()).unwrap_err().to_string();
            assert!(
                error.contains("policy.json") && error.contains("\"pinned\""),
                "{error}"
            );
        }
    }

    #[test]
    fn a_lock_that_another_holds_is_an_error_that_names_the_holder() {
        let folder = tempfile::tempdir().unwrap();
        let held = PolicyLock::acquire(folder.path()).unwrap();
        let error = PolicyLock::acquire_within(folder.path(), Duration::ZERO)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("process {} on ", process::id())),
            "{error}"
        );
        assert!(error.contains(".policy.lock"), "{error}");
        drop(held);
        PolicyLock::acquire_within(folder.path(), Duration::ZERO).unwrap();
    }
}
