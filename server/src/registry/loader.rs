//! The thread that scans for versions, has them loaded and checked, and frees those that nobody needs.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::Receiver;

use super::{
    catalogue::Catalogue, error::ScanError, folder::scan, lanes::Lanes, policy::Policies,
    shared::Shared, watch::FolderWatch,
};
use crate::compute::yield_to_others;

pub(super) struct Loader {
    shared: Arc<Shared>,
    lanes: Lanes,
    woken: Receiver<()>,
    watch: FolderWatch,
    /// The problems of the last scan, which are logged already.
    problems: Vec<String>,
}

/// Fails the calls that wait for the loader when its thread ends.
struct StopOnDrop(Arc<Shared>);

impl Drop for StopOnDrop {
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
    pub(super) fn new(shared: Arc<Shared>, lanes: Lanes, woken: Receiver<()>) -> Self {
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
                let _stop = StopOnDrop(Arc::clone(&self.shared));
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
            let due = self
                .lanes
                .loader
                .settings
                .poll
                .saturating_sub(scanned.elapsed());
            let draining = self.shared.catalogue().is_any_draining();
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
                    if woken.is_ok() {
                        self.wait_for_quiet();
                    }
                    self.update();
                    scanned = Instant::now();
                }
            }
        }
    }

    fn wait_for_quiet(&self) {
        let started = Instant::now();
        while started.elapsed() < MAX_QUIET && self.woken.recv_timeout(QUIET).is_ok() {}
    }

    /// Returns whether versions are being loaded.
    pub(super) fn is_loading(&mut self) -> bool {
        self.lanes.is_any_busy()
    }

    /// Waits for a change, and updates.
    pub(super) fn update_again(&mut self) {
        let _ = self.woken.recv_timeout(UNLOAD_INTERVAL);
        self.update();
    }

    /// Scans the model folder, loads every wanted version and frees every unused one. Versions that take long are loaded
    /// further after this has returned.
    pub(super) fn update(&mut self) {
        // Only calls that wait already are answered by this scan. Those that come during it may ask
        // for files that it has passed.
        let waiting = std::mem::take(&mut self.shared.catalogue().waiting);
        let scanned = self.scan();
        // If the policies alone cannot be read, the versions are known all the same.
        if !matches!(scanned, Err(ScanError::Folder { .. })) {
            while let Some((name, version)) = self.next_to_load()
                && self.lanes.load(&name, version)
            {}
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
                let unwatched = watched.err().map(|error| self.unwatched(&error));
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

    fn unwatched(&self, error: &notify::Error) -> String {
        let poll = self.lanes.loader.settings.poll;
        format!("changes are not notified, so the folder is polled every {poll:?}: {error}")
    }

    /// Reads the versions and then the policies. Returns the problems of single versions.
    fn read_folder(&self) -> Result<Vec<String>, ScanError> {
        // The folder comes first: if it is gone, the missing file of policies says nothing.
        let found = scan(&self.shared.folder).map_err(|error| ScanError::Folder {
            path: self.shared.folder.display().to_string(),
            detail: error.to_string(),
        })?;
        let policies = self.read_policies();
        self.shared
            .change(|catalogue| catalogue.found(found.models));
        // Policies that cannot be read keep no version from being found.
        policies.map(|()| found.problems)
    }

    fn read_policies(&self) -> Result<(), ScanError> {
        // Without the lock, an admin call could change file and catalogue in between, and the older
        // file would undo its change in the catalogue.
        let _lock = self.shared.lock_policies();
        let policies = Policies::read(&self.shared.folder)?;
        if self.shared.catalogue().policies() != &policies {
            self.shared
                .change(|catalogue| catalogue.set_policies(policies));
        }
        Ok(())
    }

    fn next_to_load(&self) -> Option<(String, u64)> {
        if self.shared.is_stopping() {
            return None;
        }
        self.shared.catalogue().next_to_load()
    }

    /// Frees the versions that nobody uses any more, on this thread.
    fn unload_unused(&self) {
        if !self.shared.catalogue().is_any_unused() {
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
