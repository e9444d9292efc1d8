//! The deadline of a call, which covers all its attempts, and when a call is retried. Retrying is safe: calls about graphs and models change nothing but caches,
//! and a measurement that is reported twice is kept once.
//!
//! A call is retried while its deadline leaves time for the pause before the retry. A call without a deadline is retried
//! until [`PATIENCE`] after its first failure. The Python client has the same rule.

use std::time::Duration;

use tokio::time::Instant;
use tonic::Code;

use crate::{ClientError, Refusal};

/// The retries of one call.
#[derive(Debug)]
pub(crate) struct Retries {
    left: u32,
    /// Number of pauses for an unavailable server so far.
    waited: u32,
    /// Time until which the call is retried. If the call has no deadline, it is set by the first failure.
    limit: Deadline,
}

/// Pause before the first retry of an unavailable server. It doubles with every further retry.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Maximum pause, unless the server asks for a longer one.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Time of retries after the first failure of a call without a deadline.
const PATIENCE: Duration = Duration::from_secs(30);

impl Retries {
    /// Allows at most `times` retries of a call with a deadline.
    pub(crate) fn new(times: u32, deadline: Deadline) -> Self {
        Self {
            left: times,
            waited: 0,
            limit: deadline,
        }
    }

    /// Returns how long to wait after an error, or `None` if the error is final or no time remains. There is no pause
    /// after an unavailable server if another replica is untried.
    pub(crate) fn pause(&mut self, error: &ClientError, is_replica_left: bool) -> Option<Duration> {
        if self.limit.left().is_none() {
            self.limit = Deadline::after(Some(PATIENCE));
        }
        // Nobody changes a certificate within the time of a call.
        let is_lost =
            matches!(error, ClientError::Connect { source, .. } if !source.is_temporary());
        if is_lost && !is_replica_left {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let asked = error.refusal().and_then(Refusal::retry_after);
        let pause = match error.code()? {
            Code::Unavailable if is_replica_left => Duration::ZERO,
            Code::Unavailable => {
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.waited));
                self.waited = self.waited.saturating_add(1);
                spread(pause.min(LONGEST_PAUSE).max(asked.unwrap_or_default()))
            }
            // Only the server knows when its limits allow the call, so without a time from it there
            // is no retry.
            Code::ResourceExhausted => spread(asked?),
            _ => return None,
        };
        self.limit.allows(pause).then_some(pause)
    }
}

/// Returns the error of a call that is not retried any more, given that of the attempt before. If the time ended the last attempt,
/// the one before says why there was no answer.
pub(crate) fn final_error(error: ClientError, before: Option<ClientError>) -> ClientError {
    match before {
        Some(before) if error.code() == Some(Code::DeadlineExceeded) => before,
        _ => error,
    }
}

/// Adds up to half of the pause at random, so that clients rejected together do not retry together.
fn spread(pause: Duration) -> Duration {
    pause.saturating_add(pause.div_f64(2.0).mul_f64(fastrand::f64()))
}

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
    use tonic::Status;
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;
    use crate::{ConnectionFailure, InvalidAnswer};

    fn refused(code: Code, retry_after: Option<Duration>) -> ClientError {
        let mut details = ErrorDetails::new();
        if let Some(delay) = retry_after {
            details.set_retry_info(Some(delay));
        }
        Status::with_error_details(code, "", details).into()
    }

    /// Retries of a call without a deadline.
    fn retries(times: u32) -> Retries {
        Retries::new(times, Deadline::after(None))
    }

    fn is_spread(pause: Option<Duration>, milliseconds: u64) -> bool {
        let shortest = Duration::from_millis(milliseconds);
        pause.is_some_and(|pause| (shortest..=shortest * 3 / 2).contains(&pause))
    }

    /// The value of a constant of the Python client, in its unit.
    fn of_python(name: &str) -> f64 {
        let defaults = include_str!("../python/hlorank/wire/defaults.py");
        let mut lines = defaults.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
        let value = value.unwrap_or_else(|| panic!("{name} is no constant"));
        let (number, shift) = value.split_once(" << ").unwrap_or((value, "0"));
        let number: f64 = number.replace('_', "").parse().unwrap();
        number * 2f64.powi(shift.parse().unwrap())
    }

    #[test]
    fn both_clients_have_the_same_defaults() {
        let ours = crate::Connection::default();
        let seconds = |name| Duration::from_secs_f64(of_python(name));
        assert_eq!(ours.timeout, Some(seconds("TIMEOUT")));
        assert_eq!(ours.connect_timeout, seconds("CONNECT_TIMEOUT"));
        assert_eq!(FIRST_PAUSE, seconds("FIRST_PAUSE"));
        assert_eq!(LONGEST_PAUSE, seconds("LONGEST_PAUSE"));
        assert_eq!(PATIENCE, seconds("PATIENCE"));
        #[expect(clippy::cast_precision_loss, reason = "a power of two")]
        let bytes = ours.message_bytes as f64;
        assert!((bytes - of_python("MESSAGE_BYTES")).abs() < f64::EPSILON);
    }

    #[test]
    fn an_unavailable_server_is_retried_after_increasing_pauses() {
        let (error, mut retries) = (refused(Code::Unavailable, None), retries(6));
        for milliseconds in [100, 200, 400, 800, 1000, 1000] {
            let pause = retries.pause(&error, false);
            assert!(is_spread(pause, milliseconds), "{pause:?}");
        }
        assert_eq!(retries.pause(&error, false), None);
    }

    #[test]
    fn a_call_is_retried_as_long_as_its_deadline_leaves_time() {
        let error = refused(Code::Unavailable, None);
        let mut patient = Retries::new(u32::MAX, Deadline::after(Some(Duration::from_mins(1))));
        assert!((0..100).all(|_| patient.pause(&error, false).is_some()));
        let mut short = Retries::new(u32::MAX, Deadline::after(Some(Duration::from_millis(90))));
        assert_eq!(short.pause(&error, false), None);
    }

    #[test]
    fn a_call_without_a_deadline_is_retried_for_a_limited_time() {
        let longer = PATIENCE + Duration::from_secs(1);
        let mut retries = retries(u32::MAX);
        let mut pause = |delay| retries.pause(&refused(Code::Unavailable, delay), false);
        assert!(pause(None).is_some());
        assert_eq!(pause(Some(longer)), None);
    }

    #[test]
    fn another_replica_is_tried_immediately_and_counts_as_a_retry() {
        let (error, mut retries) = (refused(Code::Unavailable, None), retries(3));
        assert_eq!(retries.pause(&error, true), Some(Duration::ZERO));
        assert_eq!(retries.pause(&error, true), Some(Duration::ZERO));
        assert!(is_spread(retries.pause(&error, false), 100));
        assert_eq!(retries.pause(&error, true), None);
    }

    #[test]
    fn the_pause_is_at_least_what_the_server_asks_for() {
        let delay = Some(Duration::from_secs(2));
        for code in [Code::ResourceExhausted, Code::Unavailable] {
            let pause = retries(1).pause(&refused(code, delay), false);
            assert!(is_spread(pause, 2000), "{code:?} {pause:?}");
        }
        let endless = Some(Duration::from_secs(i64::MAX.unsigned_abs()));
        let endless = refused(Code::ResourceExhausted, endless);
        assert_eq!(retries(1).pause(&endless, false), None);
    }

    #[test]
    fn a_retry_without_an_answer_leaves_the_reason_of_the_attempt_before() {
        let error = |code| refused(code, None);
        let of = |last, before: Option<Code>| final_error(error(last), before.map(error)).code();
        let (late, away) = (Code::DeadlineExceeded, Code::Unavailable);
        assert_eq!(of(late, Some(away)), Some(away));
        assert_eq!(of(late, None), Some(late));
        assert_eq!(of(Code::NotFound, Some(away)), Some(Code::NotFound));
    }

    #[test]
    fn a_server_that_is_not_trusted_is_tried_once() {
        let pause = |source, is_replica_left| {
            let endpoint = String::new();
            let error = ClientError::Connect { endpoint, source };
            retries(4).pause(&error, is_replica_left)
        };
        assert_eq!(pause(ConnectionFailure::NotTrusted, false), None);
        assert_eq!(
            pause(ConnectionFailure::NotTrusted, true),
            Some(Duration::ZERO)
        );
        assert!(pause(ConnectionFailure::Broken, false).is_some());
    }

    #[test]
    fn every_other_error_is_final() {
        let delay = Some(Duration::from_millis(20));
        for error in [
            refused(Code::ResourceExhausted, None),
            refused(Code::InvalidArgument, delay),
            refused(Code::FailedPrecondition, delay),
            refused(Code::NotFound, delay),
            refused(Code::DeadlineExceeded, delay),
            refused(Code::Cancelled, delay),
            refused(Code::Internal, delay),
            ClientError::Answer {
                endpoint: "http://127.0.0.1:7070".to_owned(),
                source: InvalidAnswer::new("the stream ended too early"),
            },
        ] {
            assert_eq!(retries(4).pause(&error, true), None, "{error}");
        }
    }

    #[test]
    fn a_deadline_allows_a_pause_that_ends_before_it() {
        let deadline = Deadline::after(Some(Duration::from_secs(100)));
        assert!(
            deadline.allows(Duration::from_secs(90)) && !deadline.allows(Duration::from_secs(100))
        );
        assert!(!deadline.is_over());
        let passed = Deadline::after(Some(Duration::ZERO));
        assert_eq!(passed.left(), Some(Duration::ZERO));
        assert!(passed.is_over() && !passed.allows(Duration::ZERO));
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
