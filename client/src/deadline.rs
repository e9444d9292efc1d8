//! How long a call may take, tries that failed included.

use std::time::Duration;

use tokio::time::Instant;

/// The time until which a call may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// When that is; `None` where there is no limit.
    pub(crate) end: Option<Instant>,
    /// How long that was when the call began.
    pub(crate) allowed: Duration,
}

/// The most that the header `grpc-timeout` can say: eight digits of hours. What is longer is no limit.
const LONGEST: Duration = Duration::from_hours(99_999_999);

/// A server may end a call so much before its client does, for `grpc-timeout` is rounded down.
const ROUNDING: Duration = Duration::from_millis(1);

impl Deadline {
    /// So long from now; never for `None`.
    pub(crate) fn after(allowed: Option<Duration>) -> Self {
        let allowed = allowed.filter(|allowed| *allowed <= LONGEST);
        let end = allowed.and_then(|allowed| Instant::now().checked_add(allowed));
        Self { end, allowed: allowed.unwrap_or(Duration::MAX) }
    }

    /// What is left of it; `None` where there is no limit.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.end.map(|end| end.saturating_duration_since(Instant::now()))
    }

    /// Whether there is time left after a pause.
    pub(crate) fn allows(&self, pause: Duration) -> bool {
        self.left().is_none_or(|left| pause < left)
    }

    /// Whether it has passed.
    pub(crate) fn is_over(&self) -> bool {
        self.left().is_some_and(|left| left <= ROUNDING)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_allows_what_ends_before_it() {
        let deadline = Deadline::after(Some(Duration::from_secs(100)));
        let left = deadline.left().unwrap();
        assert!((Duration::from_secs(90)..=Duration::from_secs(100)).contains(&left), "{left:?}");
        assert!(deadline.allows(Duration::from_secs(90)) && !deadline.allows(Duration::from_secs(100)));
        assert!(!deadline.is_over());
    }

    #[test]
    fn a_deadline_that_has_passed_allows_nothing() {
        let deadline = Deadline::after(Some(Duration::ZERO));
        assert_eq!(deadline.left(), Some(Duration::ZERO));
        assert!(deadline.is_over() && !deadline.allows(Duration::ZERO));
    }

    #[test]
    fn what_no_header_can_say_is_no_limit() {
        for allowed in [None, Some(Duration::MAX), Some(LONGEST + ROUNDING)] {
            let deadline = Deadline::after(allowed);
            assert_eq!(deadline.left(), None);
            assert!(deadline.allows(Duration::MAX) && !deadline.is_over());
        }
    }
}
