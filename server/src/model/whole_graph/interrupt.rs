use std::sync::atomic::{AtomicBool, Ordering};

use ort::session::RunOptions;

/// Stops the runs of a model from another thread. Runs in progress fail between two operators, later runs at once.
pub struct Interrupt {
    pub(super) options: RunOptions,
    stopped: AtomicBool,
}

impl Interrupt {
    pub(super) fn new() -> ort::Result<Self> {
        Ok(Self { options: RunOptions::new()?, stopped: AtomicBool::new(false) })
    }

    /// Stops every run that was started with this interrupt.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        if let Err(error) = self.options.terminate() {
            tracing::warn!(%error, "a run continues although nobody waits for it");
        }
    }

    /// Whether runs fail because they were stopped.
    pub(super) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }
}
