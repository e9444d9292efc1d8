use std::{path::Path, sync::Arc};

use arc_swap::ArcSwap;
use parking_lot::Mutex;

use crate::pem_files::read_file;

/// Why certificates or tokens cannot be used: which file or flag, what is wrong, and what to do. Does not quote the contents of
/// files.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CredentialError(pub(super) String);

/// A value that is built from files.
pub(super) trait CredentialFile {
    type Value;

    /// Returns the paths of the files.
    fn files(&self) -> Vec<&Path>;

    /// Builds the value from the contents of the files, in the order of `files`.
    fn build(&self, contents: &[Vec<u8>]) -> Result<Self::Value, CredentialError>;
}

/// The value of the last valid contents of files.
pub(super) struct WatchedFiles<S: CredentialFile> {
    source: S,
    current: ArcSwap<S::Value>,
    /// Digest of the contents that were read last, valid or not.
    seen: Mutex<blake3::Hash>,
}

type Contents = Result<Vec<Vec<u8>>, CredentialError>;

impl<S: CredentialFile> WatchedFiles<S> {
    pub(super) fn open(source: S) -> Result<Self, CredentialError> {
        let contents = read(&source);
        let seen = Mutex::new(digest(&contents));
        let current = ArcSwap::from_pointee(source.build(&contents?)?);
        Ok(Self {
            source,
            current,
            seen,
        })
    }

    pub(super) fn current(&self) -> Arc<S::Value> {
        self.current.load_full()
    }

    /// Reads the files again, and returns the result if they have changed. The current value stays if the files are not
    /// valid.
    pub(super) fn reload(&self) -> Option<Result<(), CredentialError>> {
        // The lock lasts until the value is stored, so that of two reloads the later one wins.
        let mut seen = self.seen.lock();
        let mut contents = read(&self.source);
        if *seen == digest(&contents) {
            return None;
        }
        loop {
            *seen = digest(&contents);
            let error = match contents.and_then(|contents| self.source.build(&contents)) {
                Ok(value) => {
                    self.current.store(Arc::new(value));
                    return Some(Ok(()));
                }
                Err(error) => error,
            };
            // Files that are replaced one after the other do not match each other in between.
            contents = read(&self.source);
            if *seen == digest(&contents) {
                return Some(Err(error));
            }
        }
    }
}

fn read(source: &impl CredentialFile) -> Contents {
    let read = |path: &Path| read_file(path).map_err(CredentialError);
    source.files().into_iter().map(read).collect()
}

fn digest(contents: &Contents) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    match contents {
        // Each file is hashed by itself, so that a byte that moves from one to the next is a
        // change.
        Ok(files) => files.iter().for_each(|file| {
            hasher.update(blake3::hash(file).as_bytes());
        }),
        // An error is a state of the files as well: it is reported once, and not at every poll.
        Err(error) => {
            hasher.update(error.to_string().as_bytes());
        }
    }
    hasher.finalize()
}
