use std::{
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::runtime::Handle;

use crate::model::Rejection;

/// Bounds the time of loading and checking one version.
pub(in crate::registry) struct LoadLimit {
    timers: Handle,
    deadline: Instant,
    limit: Duration,
    is_wanted: Arc<dyn Fn() -> bool>,
}

/// Interval at which it is checked whether the version is still wanted.
const INTERVAL: Duration = Duration::from_millis(50);

impl LoadLimit {
    pub(in crate::registry) fn new(
        timers: Handle,
        limit: Duration,
        is_wanted: impl Fn() -> bool + 'static,
    ) -> Self {
        Self {
            timers,
            deadline: Instant::now() + limit,
            limit,
            is_wanted: Arc::new(is_wanted),
        }
    }

    /// Returns a limit of a part of the time.
    pub(in crate::registry) fn part(&self, parts: u32) -> Self {
        let limit = self.limit / parts;
        Self {
            timers: self.timers.clone(),
            deadline: Instant::now() + limit,
            limit,
            is_wanted: Arc::clone(&self.is_wanted),
        }
    }

    /// Waits for work. At the limit, or if the version is no longer wanted, the work is dropped.
    pub(in crate::registry) fn wait<T>(
        &self,
        work: impl Future<Output = T>,
    ) -> Result<T, Rejection> {
        self.timers.block_on(async {
            tokio::select! {
                // Work that is done counts, even if the limit is reached at the same time.
                biased;
                value = work => Ok(value),
                error = self.reached() => Err(error),
            }
        })
    }

    async fn reached(&self) -> Rejection {
        loop {
            if !(self.is_wanted)() {
                let message = "it was removed or changed while it was checked";
                return Rejection::new("SERVER_FAILED", message);
            }
            if self.left().is_zero() {
                let message = format!(
                    "it was not loaded and checked within {:?} (--max-load-seconds)",
                    self.limit
                );
                return Rejection::new("LOAD_TIMEOUT", message);
            }
            tokio::time::sleep(INTERVAL.min(self.left())).await;
        }
    }

    /// Returns the time that is left.
    pub(in crate::registry) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}
