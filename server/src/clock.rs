//! The clocks. The wall clock is for the few times that outlive the process: when measurements were reported, and which of them
//! expired. What ends within a process, as leases do, goes by the one that nobody sets.

use std::{
    sync::LazyLock,
    time::{Duration, SystemTime, SystemTimeError},
};

use tokio::time::Instant;

/// When the steady clock began.
static BEGAN: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Returns the time since the first call, which no change of the wall clock affects. It is that of the async runtime, which a test
/// can pause.
pub(crate) fn steady() -> Duration {
    BEGAN.elapsed()
}

/// Returns the seconds since 1970. Fails if the clock shows a time before.
pub(crate) fn seconds() -> Result<u64, SystemTimeError> {
    seconds_at(now())
}

fn seconds_at(time: SystemTime) -> Result<u64, SystemTimeError> {
    let since = time.duration_since(SystemTime::UNIX_EPOCH)?;
    Ok(since.as_secs())
}

#[expect(
    clippy::disallowed_methods,
    reason = "no other clock is the same after a restart"
)]
pub(crate) fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_before_1970_is_an_error_and_no_panic() {
        let second = Duration::from_secs(1);
        assert_eq!(seconds_at(SystemTime::UNIX_EPOCH + second).unwrap(), 1);
        assert!(seconds_at(SystemTime::UNIX_EPOCH - second).is_err());
    }
}
