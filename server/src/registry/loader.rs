//! The thread that scans for versions, has them loaded and checked, and frees those that nobody needs.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, Sender};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};

use super::{
    catalogue::{Catalogue, CatalogueState, is_unused},
    error::ScanError,
    folder::scan,
    lanes::Lanes,
    policy::Policies,
};
use crate::compute::yield_to_others;

pub(super) struct Loader {
    shared: Arc<CatalogueState>,
    lanes: Lanes,
    woken: Receiver<()>,
    watch: FolderWatch,
    /// The problems of the last scan, which are logged already.
    problems: Vec<String>,
}

/// Fails the calls that wait for the loader when its thread ends.
struct StopLoadsOnDrop(Arc<CatalogueState>);

impl Drop for StopLoadsOnDrop {
    fn drop(&mut self) {
        if thread::panicking() {
            tracing::error!(
                "the thread that loads models failed: the loaded models keep serving, but no further ones are loaded"
            );
        }
        self.0.stop();
    }
}

/// How long files must be unchanged before they are read, as a folder is copied file by file.
const QUIET: Duration = Duration::from_millis(50);

/// Maximum time to wait until files are unchanged.
const MAX_QUIET: Duration = Duration::from_secs(1);

/// Interval at which draining versions are checked for their last request.
const UNLOAD_INTERVAL: Duration = Duration::from_millis(100);

impl Loader {
    pub(super) fn new(shared: Arc<CatalogueState>, lanes: Lanes, woken: Receiver<()>) -> Self {
        let watch = FolderWatch::new(&shared.folder, shared.wake.clone());
        Self {
            shared,
            lanes,
            woken,
            watch,
            problems: Vec::new(),
        }
    }

    /// Starts the thread, which runs until the registry stops.
    pub(super) fn spawn(mut self) -> io::Result<()> {
        thread::Builder::new()
            .name("model-loader".to_owned())
            .spawn(move || {
                let _stop = StopLoadsOnDrop(Arc::clone(&self.shared));
                // Calls are accepted from now on, and come first.
                yield_to_others();
                self.lanes.yield_to_others();
                self.run();
            })?;
        Ok(())
    }

    fn run(&mut self) {
        let mut scanned = Instant::now();
        while !self.shared.is_stopping() {
            let poll = self.lanes.loader.settings.poll;
            let due = poll.saturating_sub(scanned.elapsed());
            let draining = self.shared.catalogue().draining().next().is_some();
            // Nothing notifies the loader of the last request of a version.
            let wait = if draining {
                due.min(UNLOAD_INTERVAL)
            } else {
                due
            };
            match self.woken.recv_timeout(wait) {
                Err(_) if draining && !due.is_zero() => self.unload_unused(),
                woken => {
                    // Without a notification, no files are being copied as far as is known.
                    let notified = Instant::now();
                    while woken.is_ok()
                        && notified.elapsed() < MAX_QUIET
                        && self.woken.recv_timeout(QUIET).is_ok()
                    {}
                    self.update();
                    scanned = Instant::now();
                }
            }
        }
    }

    /// Updates until nothing is being loaded any more, or until there is enough.
    pub(super) fn update_until(&mut self, is_enough: impl Fn() -> bool) {
        self.update();
        while self.lanes.is_any_busy() && !is_enough() {
            let _ = self.woken.recv_timeout(UNLOAD_INTERVAL);
            self.update();
        }
    }

    /// Scans the model folder, loads every wanted version and frees every unused one. Versions that take long are loaded
    /// further after this has returned.
    fn update(&mut self) {
        // Only calls that wait already are answered by this scan. Those that come during it may ask
        // for files that it has passed.
        let waiting = std::mem::take(&mut self.shared.catalogue().waiting);
        let scanned = self.scan();
        // If the policies alone cannot be read, the versions are known all the same.
        if !matches!(scanned, Err(ScanError::Folder(_))) {
            while !self.shared.is_stopping() {
                // The catalogue is locked for this statement alone.
                let next = self.shared.catalogue().next_to_load();
                if !next.is_some_and(|(name, version)| self.lanes.load(&name, version)) {
                    break;
                }
            }
        }
        self.unload_unused();
        if self.shared.is_stopping() {
            // The update is incomplete. Dropping the senders fails the calls that wait.
            return;
        }
        for waiter in waiting {
            // An error means that the call was cancelled.
            let _ = waiter.send(scanned.clone());
        }
    }

    /// Updates the catalogue with what is on disk, and logs new problems.
    fn scan(&mut self) -> Result<(), ScanError> {
        // Watching starts before the scan, so that no change is missed in between.
        let watched = self.watch.renew();
        let scanned = self.read_folder();
        let problems = match &scanned {
            Ok(problems) => {
                let unwatched = watched.err().map(|error| {
                    let poll = self.lanes.loader.settings.poll;
                    format!(
                        "changes are not notified, so the folder is polled every {poll:?}: {error}"
                    )
                });
                let unmet = self.shared.catalogue().unmet_policies();
                let problems = problems.iter().cloned();
                problems.chain(unwatched).chain(unmet).collect()
            }
            Err(error) => vec![error.to_string()],
        };
        // A problem that stays is logged once, and again when it comes back.
        let is_new = |problem: &&String| !self.problems.contains(problem);
        for problem in problems.iter().filter(is_new) {
            tracing::warn!("model folder: {problem}");
        }
        self.problems = problems;
        scanned.map(drop)
    }

    /// Reads the versions and then the policies. Returns the problems of single versions.
    fn read_folder(&self) -> Result<Vec<String>, ScanError> {
        let shared = &self.shared;
        // The folder comes first: if it is gone, the missing file of policies says nothing.
        let found = scan(&shared.folder).map_err(|error| {
            let folder = shared.folder.display();
            ScanError::Folder(format!("cannot read the model folder `{folder}`: {error}"))
        })?;
        let read = {
            // Without the lock, an admin call could change file and catalogue in between, and the
            // older file would undo its change in the catalogue.
            let _lock = shared.lock_policies();
            Policies::read(&shared.folder).map(|policies| {
                if shared.catalogue().policies() != &policies {
                    shared.change(|catalogue| catalogue.set_policies(policies));
                }
            })
        };
        shared.change(|catalogue| catalogue.found(found.models));
        // Policies that cannot be read keep no version from being found.
        read?;
        Ok(found.problems)
    }

    /// Frees the versions that nobody uses any more, on this thread.
    fn unload_unused(&self) {
        if !self.shared.catalogue().draining().any(is_unused) {
            return;
        }
        for model in self.shared.change(Catalogue::take_unused) {
            let digest = model.digest();
            drop(model);
            // No run of the model is left that could add embeddings after this.
            self.lanes.loader.engine.forget(digest);
        }
    }
}

/// Wakes the loader when a file in the model folder changes, if the file system supports notifications.
struct FolderWatch {
    folder: PathBuf,
    wake: Sender<()>,
    watched: Option<WatchedFolder>,
}

struct WatchedFolder {
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
    fn renew(&mut self) -> notify::Result<()> {
        let before = self.watched.take();
        let metadata = fs::metadata(&self.folder)?;
        let identity = (metadata.dev(), metadata.ino());
        self.watched = before.filter(|before| before.identity == identity);
        if self.watched.is_some() {
            return Ok(());
        }
        let wake = self.wake.clone();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // The scans of the loader read files themselves, and must not wake it. After an error,
                // events may have been lost.
                if !event.is_ok_and(|event| event.kind.is_access()) {
                    // If the channel is full, the loader is about to scan.
                    let _ = wake.try_send(());
                }
            })?;
        watcher.watch(&self.folder, RecursiveMode::Recursive)?;
        self.watched = Some(WatchedFolder {
            identity,
            _watcher: watcher,
        });
        Ok(())
    }
}
