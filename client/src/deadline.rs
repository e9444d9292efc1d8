//! The deadline of a call, which covers all its attempts.

use std::time::Duration;

use tokio::time::Instant;

/// The time at which a call must have ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// End of the call; `None` if it is unlimited.
    pub(crate) end: Option<Instant>,
    /// Time that the call had when it began.
    pub(crate) allowed: Duration,
}

/// Maximum of the header `grpc-timeout`: eight digits of hours. A longer timeout is treated as unlimited.
const LONGEST: Duration = Duration::from_hours(99_999_999);

/// A server may end a call this much earlier than the client, because `grpc-timeout` is rounded down.
const ROUNDING: Duration = Duration::from_millis(1);

impl Deadline {
    /// Returns the deadline of a call that may take `allowed` from now. `None` is unlimited.
    pub(crate) fn after(allowed: Option<Duration>) -> Self {
        let allowed = allowed.filter(|allowed| *allowed <= LONGEST);
        let end = allowed.and_then(|allowed| Instant::now().checked_add(allowed));
        Self {
            end,
            allowed: allowed.unwrap_or(Duration::MAX),
        }
    }

    /// Returns the remaining time; `None` if it is unlimited.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.end
            .map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Returns whether time remains after a pause.
    pub(crate) fn allows(&self, pause: Duration) -> bool {
        self.left().is_none_or(|left| pause < left)
    }

    /// Returns whether the deadline has passed.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left <= ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_allows_a_pause_that_ends_before_it() {
        let deadline = Deadline::after(Some(Duration::from_secs(100)));
        let left = deadline.left().unwrap();
        assert!(
            (Duration::from_secs(90)..=Duration::from_secs(100)).contains(&left),
            "{left:?}"
        );
        assert!(
            deadline.allows(Duration::from_secs(90)) && !deadline.allows(Duration::from_secs(100))
        );
        assert!(!deadline.is_over());
    }

    #[test]
    fn a_deadline_that_has_passed_allows_no_pause() {
        let deadline = Deadline::after(Some(Duration::ZERO));
        assert_eq!(deadline.left(), Some(Duration::ZERO));
        assert!(deadline.is_over() && !deadline.allows(Duration::ZERO));
    }

    #[test]
    fn a_timeout_that_no_header_can_carry_is_unlimited() {
        for allowed in [None, Some(Duration::MAX), Some(LONGEST + ROUNDING)] {
            let deadline = Deadline::after(allowed);
            assert_eq!(deadline.left(), None);
            assert!(deadline.allows(Duration::MAX) && !deadline.is_over());
        }
    }
}
