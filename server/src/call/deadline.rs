use std::time::Duration;

use tokio::time::Instant;

/// The deadline of a call.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// When the call ends.
    pub end: Instant,
    /// Time that the client allowed for the call.
    pub allowed: Duration,
}

impl Deadline {
    /// Returns when the call ends, for code that does not use tokio's clock.
    #[must_use]
    pub fn instant(self) -> std::time::Instant {
        self.end.into_std()
    }

    /// Returns the time left until the deadline.
    #[must_use]
    pub fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}
