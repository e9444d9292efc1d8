use std::{sync::Arc, time::Duration};

use tokio::{task::JoinHandle, time::sleep};

use super::{MeasurementFilter, MeasurementStore};
use crate::clock;

/// Deletes measurements that were reported too long ago, until this is dropped.
pub(crate) struct RunningRetention(JoinHandle<()>);

/// Expired measurements are looked for this many times until another one is as old.
const TIMES: u32 = 100;

/// Shortest and longest time between two of these.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_hours(1);

impl RunningRetention {
    pub(crate) fn start(store: Arc<MeasurementStore>, keep: Duration) -> Self {
        Self(tokio::spawn(expire(store, keep)))
    }
}

impl Drop for RunningRetention {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn expire(store: Arc<MeasurementStore>, keep: Duration) {
    loop {
        // Nothing is older than 1970, which a clock shows that was not set yet.
        let now = clock::seconds().unwrap_or_default();
        let expired = MeasurementFilter {
            reported_before: Some(now.saturating_sub(keep.as_secs())),
            ..MeasurementFilter::default()
        };
        match store.delete(&expired).await {
            Ok(0) => {}
            Ok(measurements) => tracing::info!(measurements, "measurements expired"),
            Err(error) => tracing::warn!(%error, "expired measurements were not deleted"),
        }
        sleep((keep / TIMES).clamp(MIN_PAUSE, MAX_PAUSE)).await;
    }
}
