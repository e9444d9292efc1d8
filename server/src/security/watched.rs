use std::{
    fs,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use arc_swap::ArcSwap;

use super::CredentialError;

/// Files that something is made of.
pub(super) trait Source {
    type Made;

    /// Which files.
    fn files(&self) -> Vec<&Path>;

    /// Makes it of what the files hold, in their order.
    fn make(&self, contents: &[Vec<u8>]) -> Result<Self::Made, CredentialError>;
}

/// What files made last that was sound.
pub(super) struct Watched<S: Source> {
    source: S,
    current: ArcSwap<S::Made>,
    /// What the files held when they were looked at last, sound or not.
    seen: Mutex<blake3::Hash>,
}

type Contents = Result<Vec<Vec<u8>>, CredentialError>;

impl<S: Source> Watched<S> {
    pub(super) fn open(source: S) -> Result<Self, CredentialError> {
        let contents = read(&source);
        let seen = Mutex::new(digest(&contents));
        let current = ArcSwap::from_pointee(source.make(&contents?)?);
        Ok(Self { source, current, seen })
    }

    pub(super) fn current(&self) -> Arc<S::Made> {
        self.current.load_full()
    }

    /// Whether the files changed, and what came of it: where they are not sound, what was made before stays.
    pub(super) fn look(&self) -> Option<Result<(), CredentialError>> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let mut contents = read(&self.source);
        if *seen == digest(&contents) {
            return None;
        }
        loop {
            *seen = digest(&contents);
            let error = match contents.and_then(|contents| self.source.make(&contents)) {
                Ok(made) => {
                    self.current.store(Arc::new(made));
                    return Some(Ok(()));
                }
                Err(error) => error,
            };
            // Files that are replaced one after the other may not fit each other for a moment.
            contents = read(&self.source);
            if *seen == digest(&contents) {
                return Some(Err(error));
            }
        }
    }
}

fn read(source: &impl Source) -> Contents {
    let read = |path: &Path| {
        fs::read(path).map_err(|source| CredentialError::Unreadable { path: path.to_owned(), source })
    };
    source.files().into_iter().map(read).collect()
}

fn digest(contents: &Contents) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    match contents {
        Ok(files) => files.iter().for_each(|file| {
            hasher.update(blake3::hash(file).as_bytes());
        }),
        Err(error) => {
            hasher.update(error.to_string().as_bytes());
        }
    }
    hasher.finalize()
}
