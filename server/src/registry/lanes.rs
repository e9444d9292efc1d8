//! The threads that load versions. A version that takes long has one for itself, and others are loaded meanwhile.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crossbeam_channel::{Receiver, Sender, bounded};

use super::{
    validation::ValidationEngine,
    version_loader::{Attempt, VersionLoader},
};
use crate::compute::Worker;

pub(super) struct Lanes {
    pub(super) loader: Arc<VersionLoader>,
    all: Vec<Lane>,
    is_low_priority: bool,
}

/// A thread that loads one version at a time.
struct Lane {
    attempts: Sender<Attempt>,
    done: Receiver<()>,
    /// One per worker.
    engines: Arc<Vec<ValidationEngine>>,
    is_busy: bool,
    /// Whether nobody waits for the version any more, so that the thread wakes the loader when it is done.
    is_late: Arc<AtomicBool>,
}

/// What the thread of a lane has.
struct LaneThread {
    loader: Arc<VersionLoader>,
    engines: Arc<Vec<ValidationEngine>>,
    done: Sender<()>,
    is_late: Arc<AtomicBool>,
}

/// Maximum number of versions that are loaded at the same time.
const MAX_LANES: usize = 4;

/// How long the next version waits for the one before. Most take less than a second.
const PATIENCE: Duration = Duration::from_secs(5);

impl Lanes {
    pub(super) fn start(loader: VersionLoader) -> io::Result<Self> {
        let loader = Arc::new(loader);
        let all = vec![Lane::start(&loader)?];
        Ok(Self {
            loader,
            all,
            is_low_priority: false,
        })
    }

    /// Gives the threads that check versions a low priority.
    pub(super) fn yield_to_others(&mut self) {
        self.is_low_priority = true;
        self.all.iter().for_each(Lane::yield_to_others);
    }

    /// Starts to load a version, and waits for a while until that is done. Returns whether there was a free lane.
    pub(super) fn load(&mut self, name: &str, version: u64) -> bool {
        let loader = Arc::clone(&self.loader);
        self.free_lane()
            .is_some_and(|lane| lane.load(&loader, name, version))
    }

    fn free_lane(&mut self) -> Option<&mut Lane> {
        let mut free = self.all.iter_mut().position(Lane::is_free);
        if free.is_none() && self.all.len() < MAX_LANES {
            match Lane::start(&self.loader) {
                Ok(lane) => self.all.push(lane),
                Err(error) => {
                    tracing::warn!(%error, "no thread can be started to load another version");
                }
            }
            if self.is_low_priority {
                self.all.iter().for_each(Lane::yield_to_others);
            }
            free = self.all.iter_mut().position(Lane::is_free);
        }
        self.all.get_mut(free?)
    }

    pub(super) fn is_any_busy(&mut self) -> bool {
        !self.all.iter_mut().all(Lane::is_free)
    }
}

impl LaneThread {
    /// Loads version after version, until the lane is dropped.
    fn run(self, attempts: Receiver<Attempt>) {
        for attempt in attempts {
            self.loader.load(&self.engines, &attempt);
            // Work that was dropped at the limit may still run, and would delay the next version.
            self.engines
                .iter()
                .for_each(ValidationEngine::wait_until_free);
            // An error means that the registry was dropped.
            let _ = self.done.send(());
            if self.is_late.swap(false, Ordering::AcqRel) {
                self.loader.shared.wake();
            }
        }
    }
}

impl Lane {
    fn start(loader: &Arc<VersionLoader>) -> io::Result<Self> {
        let (attempts, received) = bounded::<Attempt>(1);
        let (done, is_done) = bounded(1);
        let engines =
            (0..loader.settings.workers).map(|worker| loader.validation_engine(Worker(worker)));
        let engines = Arc::new(engines.collect::<io::Result<Vec<_>>>()?);
        let is_late = Arc::new(AtomicBool::new(false));
        let thread = LaneThread {
            loader: Arc::clone(loader),
            engines: Arc::clone(&engines),
            done,
            is_late: Arc::clone(&is_late),
        };
        thread::Builder::new()
            .name("version-loader".to_owned())
            .spawn(move || thread.run(received))?;
        Ok(Self {
            attempts,
            done: is_done,
            engines,
            is_busy: false,
            is_late,
        })
    }

    fn yield_to_others(&self) {
        self.engines
            .iter()
            .for_each(ValidationEngine::yield_to_others);
    }

    fn is_free(&mut self) -> bool {
        self.is_busy &= self.done.try_recv().is_err();
        !self.is_busy
    }

    fn load(&mut self, loader: &VersionLoader, name: &str, version: u64) -> bool {
        let Some(attempt) = loader.begin(name, version) else {
            return false;
        };
        // The attempt before may have ended just before its mark was set, which then stayed.
        self.is_late.store(false, Ordering::Release);
        self.is_busy = self.attempts.send(attempt).is_ok();
        self.is_busy = self.is_busy && self.done.recv_timeout(PATIENCE).is_err();
        if self.is_busy {
            self.is_late.store(true, Ordering::Release);
            // The thread reports its end before it looks at the mark: if it did not see the mark,
            // its report is here, and nobody needs to be woken.
            self.is_free();
        }
        true
    }
}
