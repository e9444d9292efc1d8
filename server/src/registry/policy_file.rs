//! The file `policy.json`, which every server of a model folder follows and may change.

use std::{
    fs::{self, File, OpenOptions, Permissions, TryLockError},
    io::{self, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use rustix::system::uname;
use tempfile::NamedTempFile;

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

/// Interval at which the lock is tried.
const INTERVAL: Duration = Duration::from_millis(5);

/// Returns the path of the file as errors show it.
pub(super) fn shown_path(folder: &Path) -> String {
    folder.join(FILE_NAME).display().to_string()
}

/// Returns the content of the file; `None` if there is no file.
pub(super) fn read(folder: &Path) -> Result<Option<Vec<u8>>, PolicyError> {
    match fs::read(folder.join(FILE_NAME)) {
        Ok(content) => Ok(Some(content)),
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
mod tests {
    use super::*;

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
