use std::time::{Duration, Instant};

use tokio::time::sleep;

/// A share of the time of the compute threads. Work that took some time is followed by a rest in proportion, so that the
/// share holds even if the work used every thread.
pub(super) struct Budget {
    /// More than 0 and at most 1.
    share: f64,
}

impl Budget {
    pub(super) fn new(share: f64) -> Self {
        Self { share }
    }

    /// Does work, and rests.
    pub(super) async fn spend<T>(&self, work: impl Future<Output = T>) -> T {
        let started = Instant::now();
        let done = work.await;
        sleep(self.rest_after(started.elapsed())).await;
        done
    }

    fn rest_after(&self, spent: Duration) -> Duration {
        // Work w and rest r have the share w / (w + r), so that r is w · (1 / share − 1).
        spent.mul_f64(1.0 / self.share - 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rest_makes_the_work_its_share() {
        let rest = |share| Budget::new(share).rest_after(Duration::from_secs(1));
        assert_eq!(rest(0.25), Duration::from_secs(3));
        assert_eq!(rest(1.0), Duration::ZERO);
    }
}
