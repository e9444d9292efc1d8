use std::{
    sync::atomic::{AtomicU64, Ordering},
    time::{Duration, Instant},
};

/// What is known of the work of a pool.
pub(super) struct Activity {
    panics: AtomicU64,
    started: Instant,
    /// Milliseconds from the start to the last interactive call; 0 if there was none.
    last_interactive: AtomicU64,
}

/// Time after an interactive call during which others are expected.
pub(super) const INTERACTIVE_PERIOD: Duration = Duration::from_millis(100);

impl Activity {
    pub(super) fn new() -> Self {
        Self {
            panics: AtomicU64::new(0),
            started: Instant::now(),
            last_interactive: AtomicU64::new(0),
        }
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
        // 0 stands for none, so a call in the first millisecond counts as one in the second.
        self.last_interactive.store(now.max(1), Ordering::Relaxed);
    }

    /// Returns whether there was an interactive call recently.
    pub(super) fn is_interactive(&self) -> bool {
        let last = self.last_interactive.load(Ordering::Relaxed);
        last > 0 && self.started.elapsed() < Duration::from_millis(last) + INTERACTIVE_PERIOD
    }
}
