use std::{
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use tokio::sync::watch;

use super::{RegistrySettings, catalogue::Catalogue, serving::Serving, versions::Versions};
use crate::{metrics::Metrics, model::Model};

/// What requests, admin calls and the loader share.
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    catalogue: Mutex<Catalogue>,
    /// Held by whoever reads or changes the policies on disk until they are followed here.
    policy_turn: Mutex<()>,
    pub(super) serving: ArcSwap<Serving>,
    pub(super) changes: watch::Sender<()>,
    pub(super) wake: Sender<()>,
    stopping: AtomicBool,
    pub(super) metrics: Arc<Metrics>,
}

impl Shared {
    pub(super) fn new(settings: &RegistrySettings, wake: Sender<()>, metrics: Arc<Metrics>) -> Self {
        let catalogue = Catalogue::new(settings.defaults.clone(), settings.retain);
        Self {
            folder: settings.folder.clone(),
            serving: ArcSwap::from_pointee(catalogue.serving()),
            catalogue: Mutex::new(catalogue),
            policy_turn: Mutex::new(()),
            changes: watch::Sender::new(()),
            wake,
            stopping: AtomicBool::new(false),
            metrics,
        }
    }

    /// Each of its operations leaves the catalogue sound, so a panic elsewhere does not spoil it.
    pub(super) fn catalogue(&self) -> MutexGuard<'_, Catalogue> {
        self.catalogue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the catalogue, and publishes what serves then: requests see all of a change or nothing.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Catalogue) -> T) -> T {
        let mut catalogue = self.catalogue();
        let result = change(&mut catalogue);
        let changed = Instant::now();
        let serving = catalogue.serving();
        if !self.serving.load().is_same(&serving) {
            self.serving.store(Arc::new(serving));
            self.metrics.loading.swapped(changed.elapsed());
        }
        catalogue.show(&self.metrics);
        drop(catalogue);
        self.changes.send_replace(());
        result
    }

    pub(super) fn policy_turn(&self) -> MutexGuard<'_, ()> {
        self.policy_turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn with_model(&self, name: &str, change: impl FnOnce(&mut Versions<Arc<Model>>)) {
        self.change(|catalogue| catalogue.get_mut(name).map(change));
    }

    pub(super) fn stable(&self, name: &str) -> Option<Arc<Model>> {
        self.serving.load().models.get(name).map(|served| Arc::clone(&served.stable.1))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    pub(super) fn stop(&self) {
        let mut catalogue = self.catalogue();
        self.stopping.store(true, Ordering::Release);
        // Nobody will do what they wait for.
        catalogue.waiting.clear();
        drop(catalogue);
        self.wake();
    }

    /// Has the loader look at once.
    pub(super) fn wake(&self) {
        // Where there is no room, it will look anyway.
        let _ = self.wake.try_send(());
    }
}
