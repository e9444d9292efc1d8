//! Whether a connection carries calls, and since when it carries none.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// Counts the calls of one connection. Each request has its connection's among its extensions.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionActivity(Arc<Mutex<OpenCalls>>);

/// A call that is counted until it is dropped.
#[derive(Debug)]
pub(crate) struct CountedCall {
    connection: ConnectionActivity,
    stage: Stage,
}

/// What a call is counted as.
#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Its headers have arrived.
    Open,
    /// Its first message has been delivered, so that the server works for it.
    Working,
}

#[derive(Debug)]
struct OpenCalls {
    open: Count,
    working: Count,
}

#[derive(Debug)]
struct Count {
    calls: u32,
    /// When a call last began or ended.
    changed: Instant,
}

impl ConnectionActivity {
    /// Returns the activity of a new connection.
    pub(crate) fn new() -> Self {
        let count = || Count {
            calls: 0,
            changed: Instant::now(),
        };
        Self(Arc::new(Mutex::new(OpenCalls {
            open: count(),
            working: count(),
        })))
    }

    /// Counts a call from its headers to the end of its answer.
    pub(crate) fn open(&self) -> CountedCall {
        self.count(Stage::Open)
    }

    /// Counts a call whose first message has been delivered. The connection is not closed before the result is dropped,
    /// which is after the answer has been sent. A call may be counted more than once.
    pub(crate) fn begin(&self) -> CountedCall {
        self.count(Stage::Working)
    }

    fn count(&self, stage: Stage) -> CountedCall {
        self.change(stage, |calls| calls + 1);
        CountedCall {
            connection: self.clone(),
            stage,
        }
    }

    fn change(&self, stage: Stage, change: impl FnOnce(u32) -> u32) {
        let mut calls = self.0.lock();
        let count = match stage {
            Stage::Open => &mut calls.open,
            Stage::Working => &mut calls.working,
        };
        // The time of the change counts only when no call is left, so every change may set it.
        *count = Count {
            calls: change(count.calls),
            changed: Instant::now(),
        };
    }

    /// Returns since when the server has worked for no call; `None` if it does.
    pub(super) fn idle_since(&self) -> Option<Instant> {
        self.0.lock().working.ended()
    }

    /// Returns since when the connection has carried no call; `None` if it does.
    fn quiet_since(&self) -> Option<Instant> {
        let calls = self.0.lock();
        Some(calls.open.ended()?.max(calls.working.ended()?))
    }

    /// Waits until the server has worked for no call for this time.
    pub(crate) async fn until_idle(&self, time: Duration) {
        wait(time, || self.idle_since()).await;
    }

    /// Waits until the connection has carried no call for this time.
    pub(crate) async fn until_quiet(&self, time: Duration) {
        wait(time, || self.quiet_since()).await;
    }
}

impl Count {
    fn ended(&self) -> Option<Instant> {
        (self.calls == 0).then_some(self.changed)
    }
}

impl Drop for CountedCall {
    fn drop(&mut self) {
        self.connection.change(self.stage, |calls| calls - 1);
    }
}

/// Waits until `since` has been reported for this time, counted from now. Looks at it at intervals of this time.
async fn wait(time: Duration, since: impl Fn() -> Option<Instant>) {
    let started = Instant::now();
    loop {
        // While calls are in flight, nothing is known but that the wait takes at least this time
        // from now on.
        let end = since().map_or_else(Instant::now, |since| since.max(started)) + time;
        sleep_until(end).await;
        // A call may have begun and ended during the sleep, which moves the end.
        if since().is_some_and(|since| since.max(started) + time <= end) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_quiet_a_time_after_its_last_call() {
        let activity = ConnectionActivity::new();
        let started = Instant::now();
        let calls = (activity.open(), activity.begin());
        assert_eq!(
            (activity.idle_since(), activity.quiet_since()),
            (None, None)
        );
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(15)).await;
            drop(calls);
        });
        activity.until_quiet(Duration::from_secs(10)).await;
        assert!(
            (25..=35).contains(&started.elapsed().as_secs()),
            "{:?}",
            started.elapsed()
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_without_a_message_leaves_a_connection_idle() {
        let activity = ConnectionActivity::new();
        let since = activity.idle_since();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let call = activity.open();
        assert_eq!(activity.idle_since(), since);
        let message = activity.begin();
        assert_eq!(activity.idle_since(), None);
        drop((call, message));
        assert_ne!(activity.idle_since(), since);
        activity.until_idle(Duration::ZERO).await;
    }
}
