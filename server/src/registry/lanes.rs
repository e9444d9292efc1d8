//! The threads that load versions. A version that takes long does not hold up the others: the next one gets another lane.

use std::{
    io,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::{Receiver, TryRecvError, bounded};

use super::{
    validation_engine::ValidationEngine, version_loader::VersionLoader, versions::Versions,
};
use crate::model::Rejection;

pub(super) struct Lanes {
    pub(super) loader: Arc<VersionLoader>,
    all: Vec<Lane>,
    is_low_priority: bool,
}

/// What loads one version at a time.
struct Lane {
    /// One per worker. They are kept for the next version, because their threads would fragment the memory if they came and went.
    engines: Arc<Vec<ValidationEngine>>,
    /// Says when the version in progress is loaded or rejected.
    done: Option<Receiver<()>>,
}

/// Maximum number of versions that are loaded at the same time.
const MAX_LANES: usize = 4;

/// How long the next version waits for the one before. Most take less than a second.
const PATIENCE: Duration = Duration::from_secs(5);

impl Lanes {
    pub(super) fn start(loader: VersionLoader) -> io::Result<Self> {
        Ok(Self {
            all: vec![Lane::start(&loader)?],
            loader: Arc::new(loader),
            is_low_priority: false,
        })
    }

    /// Gives the threads that check versions a low priority.
    pub(super) fn yield_to_others(&mut self) {
        self.is_low_priority = true;
        self.all.iter().for_each(Lane::yield_to_others);
    }

    pub(super) fn is_any_busy(&mut self) -> bool {
        !self.all.iter_mut().all(Lane::is_free)
    }

    /// Starts to load a version, and waits for a while until that is done. Returns whether there was a free lane.
    pub(super) fn load(&mut self, name: &str, version: u64) -> bool {
        let Some(lane) = self.free_lane() else {
            return false;
        };
        let lane = &mut self.all[lane];
        let Some(attempt) = self.loader.begin(name, version) else {
            return false;
        };
        let (done, is_done) = bounded(1);
        let loader = Arc::clone(&self.loader);
        let engines = Arc::clone(&lane.engines);
        let load = move || {
            let started = Instant::now();
            loader.load(&engines, &attempt);
            // Work that was dropped at the limit may still run, and would delay the next version.
            engines.iter().for_each(ValidationEngine::wait_until_free);
            // An error means that the registry was dropped.
            let _ = done.send(());
            // The loader has stopped waiting, or is about to.
            if started.elapsed() > PATIENCE / 2 {
                loader.shared.wake();
            }
        };
        let thread = thread::Builder::new().name("version-loader".to_owned());
        if let Err(error) = thread.spawn(load) {
            let message = format!("no thread can be started to load it: {error}");
            let rejection = Rejection {
                transient: true,
                ..Rejection::new("SERVER_FAILED", message)
            };
            let reject = |versions: &mut Versions<_>| versions.rejected(version, rejection);
            self.loader.shared.with_model(name, reject);
        } else if is_done.recv_timeout(PATIENCE).is_err() {
            lane.done = Some(is_done);
        }
        true
    }

    /// Returns the number of a lane that loads nothing. Starts another one if all do.
    fn free_lane(&mut self) -> Option<usize> {
        let free = self.all.iter_mut().position(Lane::is_free);
        if free.is_some() || self.all.len() == MAX_LANES {
            return free;
        }
        let started = Lane::start(&self.loader).inspect_err(
            |error| tracing::warn!(%error, "no thread can be started to load another version"),
        );
        let lane = started.ok()?;
        if self.is_low_priority {
            lane.yield_to_others();
        }
        self.all.push(lane);
        Some(self.all.len() - 1)
    }
}

impl Lane {
    fn start(loader: &VersionLoader) -> io::Result<Self> {
        Ok(Self {
            engines: Arc::new(loader.engines()?),
            done: None,
        })
    }

    fn yield_to_others(&self) {
        let engines = self.engines.iter();
        engines.for_each(ValidationEngine::yield_to_others);
    }

    fn is_free(&mut self) -> bool {
        let loading = self.done.take();
        self.done = loading.filter(|done| done.try_recv() == Err(TryRecvError::Empty));
        self.done.is_none()
    }
}
