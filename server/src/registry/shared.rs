use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;

use super::{
    catalogue::Catalogue, serving::ServingModels, settings::RegistrySettings, versions::Versions,
};
use crate::{
    metrics::Metrics,
    model::{Model, Rejection},
};

/// State that requests, admin calls and the loader share.
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    catalogue: Mutex<Catalogue>,
    /// Held while the policies on disk are read or changed, until the catalogue follows them.
    policy_lock: Mutex<()>,
    pub(super) serving: ArcSwap<ServingModels>,
    pub(super) changes: watch::Sender<()>,
    pub(super) wake: Sender<()>,
    stopping: AtomicBool,
    pub(super) metrics: Arc<Metrics>,
}

/// Why a version is rejected whose run did not end.
const RUN_ABANDONED: &str = "a run did not end although it was stopped, and its thread was left behind; publish a version that \
                             answers this input, or reload to try again";

impl Shared {
    pub(super) fn new(
        settings: &RegistrySettings,
        wake: Sender<()>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let catalogue = Catalogue::new(settings.defaults.clone(), settings.retain);
        Self {
            folder: settings.folder.clone(),
            serving: ArcSwap::from_pointee(catalogue.serving()),
            catalogue: Mutex::new(catalogue),
            policy_lock: Mutex::new(()),
            changes: watch::Sender::new(()),
            wake,
            stopping: AtomicBool::new(false),
            metrics,
        }
    }

    /// Locks the catalogue. Each of its operations leaves it consistent, so a panic elsewhere does not corrupt it.
    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock()
    }

    /// Changes the catalogue, and publishes the versions that serve after that. Requests see all of a change or none.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut catalogue = self.catalogue();
        let result = change(&mut catalogue);
        let changed = Instant::now();
        let serving = catalogue.serving();
        // The catalogue stays locked, so that snapshots are published in the order of the changes.
        if !self.serving.load().is_same(&serving) {
            self.serving.store(Arc::new(serving));
            self.metrics.loading.swap_seconds.record(changed.elapsed());
        }
        catalogue.update_metrics(&self.metrics);
        drop(catalogue);
        self.changes.send_replace(());
        result
    }

    pub(super) fn lock_policies(&self) -> MutexGuard<'_, ()> {
        self.policy_lock.lock()
    }

    pub(super) fn with_model<T>(
        &self,
        name: &str,
        change: impl FnOnce(&mut Versions<Arc<Model>>) -> T,
    ) -> Option<T> {
        self.change(|catalogue| catalogue.get_mut(name).map(change))
    }

    /// Takes a version out of service because one of its runs did not end. The version before takes over.
    pub(super) fn abandoned(&self, name: &str, version: u64) {
        self.metrics.model(name).abandoned_runs.increment(1);
        let rejection = Rejection::new("RUN_ABANDONED", RUN_ABANDONED);
        // The model is dropped after the catalogue is unlocked.
        drop(self.change(|catalogue| catalogue.get_mut(name)?.abandoned(version, rejection)));
        self.wake();
    }

    pub(super) fn stable(&self, name: &str) -> Option<Arc<Model>> {
        let serving = self.serving.load();
        let served = serving.models.get(name)?;
        Some(Arc::clone(&served.stable.1))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        // The mark is set under the lock: a call either sees it, or is in the list that is cleared.
        let mut catalogue = self.catalogue();
        self.stopping.store(true, Ordering::Release);
        // Dropping the senders fails the calls that wait.
        catalogue.waiting.clear();
        drop(catalogue);
        self.changes.send_replace(());
        self.wake();
    }

    /// Makes the loader scan the model folder at once.
    pub(super) fn wake(&self) {
        // If the channel is full, the loader is about to scan.
        let _ = self.wake.try_send(());
    }
}
