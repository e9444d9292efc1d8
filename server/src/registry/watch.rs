use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crossbeam_channel::Sender;
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

/// Wakes the loader when a file in the model folder changes, if the file system supports notifications.
pub(super) struct FolderWatch {
    folder: PathBuf,
    wake: Sender<()>,
    watched: Option<Watched>,
}

struct Watched {
    /// Device and inode of the folder, as another folder may take its place.
    identity: (u64, u64),
    /// Watches until it is dropped.
    _watcher: RecommendedWatcher,
}

impl FolderWatch {
    pub(super) fn new(folder: &Path, wake: Sender<()>) -> Self {
        Self {
            folder: folder.to_owned(),
            wake,
            watched: None,
        }
    }

    /// Starts to watch the folder, unless it is watched already.
    pub(super) fn renew(&mut self) -> notify::Result<()> {
        let before = self.watched.take();
        let metadata = fs::metadata(&self.folder)?;
        let identity = (metadata.dev(), metadata.ino());
        self.watched = before.filter(|before| before.identity == identity);
        if self.watched.is_some() {
            return Ok(());
        }
        let mut watcher = self.watcher()?;
        watcher.watch(&self.folder, RecursiveMode::Recursive)?;
        self.watched = Some(Watched {
            identity,
            _watcher: watcher,
        });
        Ok(())
    }

    fn watcher(&self) -> notify::Result<RecommendedWatcher> {
        let wake = self.wake.clone();
        notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
            // The scans of the loader read files themselves, and must not wake it. After an error,
            // events may have been lost.
            if !event.is_ok_and(|event| event.kind.is_access()) {
                // If the channel is full, the loader is about to scan.
                let _ = wake.try_send(());
            }
        })
    }
}
