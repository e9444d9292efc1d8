use std::{
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process, thread,
    time::{Duration, Instant},
};

use rustix::system::uname;

use super::policy_error::PolicyError;

/// The right to change the policies of a model folder. One change at a time has it, over all processes that use the
/// folder; it ends when this is dropped, or when the process dies.
#[derive(Debug)]
pub(super) struct PolicyLock {
    folder: PathBuf,
    _file: File,
}

/// The lock is a file of its own, because each change replaces `policy.json`.
const FILE_NAME: &str = ".policy.lock";

/// Maximum time to wait for the lock. A change holds it for milliseconds.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// Interval at which the lock is tried.
const INTERVAL: Duration = Duration::from_millis(5);

impl PolicyLock {
    /// Waits until no other change has the lock.
    pub(super) fn acquire(folder: &Path) -> Result<Self, PolicyError> {
        Self::acquire_within(folder, MAX_WAIT)
    }

    fn acquire_within(folder: &Path, wait: Duration) -> Result<Self, PolicyError> {
        let path = folder.join(FILE_NAME);
        let failed = |error: &io::Error| PolicyError::unwritable(folder, error);
        let mut file = open(&path).map_err(|error| failed(&error))?;
        if !lock_within(&file, wait).map_err(|error| failed(&error))? {
            return Err(locked(&path, wait));
        }
        // Only an error message shows it.
        let _ = write_holder(&mut file);
        Ok(Self {
            folder: folder.to_owned(),
            _file: file,
        })
    }

    /// The model folder.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Locks the file, and returns whether that was possible within some time.
fn lock_within(file: &File, wait: Duration) -> io::Result<bool> {
    let started = Instant::now();
    // The system has no call that waits for a lock and gives up after some time.
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if started.elapsed() >= wait => return Ok(false),
            Err(TryLockError::WouldBlock) => thread::sleep(INTERVAL),
        }
    }
}

/// Opens the file, or creates it. A file of another user may be read-only.
fn open(path: &Path) -> io::Result<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path);
    match opened {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            File::open(path).map_err(|_| error)
        }
        opened => opened,
    }
}

fn write_holder(file: &mut File) -> io::Result<()> {
    let host = uname();
    file.set_len(0)?;
    write!(
        file,
        "process {} on {}",
        process::id(),
        host.nodename().to_string_lossy()
    )
}

fn locked(path: &Path, waited: Duration) -> PolicyError {
    let holder = fs::read_to_string(path).unwrap_or_default();
    let holder = if holder.is_empty() {
        "another process".to_owned()
    } else {
        holder
    };
    PolicyError::Locked {
        path: path.display().to_string(),
        holder,
        waited,
    }
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
