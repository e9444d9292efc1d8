use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// What the workers of a pool do.
pub(super) struct Activity {
    busy: AtomicUsize,
    panics: AtomicU64,
    started: Instant,
    /// Milliseconds from the start to the last interactive call; 0 if there was none.
    last_interactive: AtomicU64,
}

/// A worker that works, until this is dropped.
pub(super) struct Busy<'a>(&'a Activity);

/// Time after an interactive call during which others are expected.
pub(super) const INTERACTIVE_PERIOD: Duration = Duration::from_millis(100);

impl Activity {
    pub(super) fn new() -> Self {
        let (busy, panics) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { busy, panics, started: Instant::now(), last_interactive: AtomicU64::new(0) }
    }

    pub(super) fn begin(&self) -> Busy<'_> {
        self.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self)
    }

    /// Number of workers that work.
    pub(super) fn busy(&self) -> usize {
        self.busy.load(Ordering::Relaxed)
    }

    pub(super) fn panicked(&self) {
        self.panics.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn panics(&self) -> u64 {
        self.panics.load(Ordering::Relaxed)
    }

    /// Records that an interactive call is in flight now.
    pub(super) fn note_interactive(&self) {
        let now = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last_interactive.store(now.max(1), Ordering::Relaxed);
    }

    /// Returns whether there was an interactive call recently.
    pub(super) fn is_interactive(&self) -> bool {
        let last = self.last_interactive.load(Ordering::Relaxed);
        last > 0 && self.started.elapsed() < Duration::from_millis(last) + INTERACTIVE_PERIOD
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
