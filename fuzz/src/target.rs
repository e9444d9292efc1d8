use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use crate::mutate::Mutate;

/// A reader of one kind of input, and what it promises.
pub struct Target {
    /// Name of the target and of its folder in `corpus`.
    pub name: &'static str,
    /// Changes an input.
    pub mutate: Mutate,
    /// Reads an input; panics if a promise is broken.
    pub read: fn(&[u8]),
}

impl Target {
    /// Maximum processor time of one input.
    pub const MAX_TIME: Duration = Duration::from_secs(1);

    /// Reads an input.
    ///
    /// # Panics
    /// If the reader breaks a promise or takes more than [`Self::MAX_TIME`].
    pub fn check(&self, input: &[u8]) {
        Self::check_time(self.time(input));
    }

    /// Reads an input and returns the processor time that it took.
    ///
    /// One that took too long is read again, and the shorter time counts: a virtual processor also counts what its
    /// host takes from it.
    #[must_use]
    pub(crate) fn time(&self, input: &[u8]) -> Duration {
        let once = || {
            let started = processor_time();
            (self.read)(input);
            processor_time().saturating_sub(started)
        };
        let took = once();
        if took <= Self::MAX_TIME {
            return took;
        }
        took.min(once())
    }

    /// Panics if a time is more than [`Self::MAX_TIME`].
    pub(crate) fn check_time(took: Duration) {
        assert!(
            took <= Self::MAX_TIME,
            "{took:?} of processor time, more than {:?}",
            Self::MAX_TIME
        );
    }
}

/// Returns the processor time of this thread, which other processes do not lengthen.
pub(crate) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        time.tv_sec.unsigned_abs(),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}
