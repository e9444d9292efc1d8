//! When a call is tried again. Every call about graphs or models may be: none changes anything but what is cached.

use std::time::Duration;

use tonic::Code;

use crate::{ClientError, Refusal};

/// How often one call is tried again, and after how long.
#[derive(Debug)]
pub(crate) struct Retries {
    left: u32,
    /// How often an unavailable server was waited for.
    waited: u32,
}

/// Before the first retry of an unavailable server; twice that before the next.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

impl Retries {
    /// At most so many.
    pub(crate) fn new(times: u32) -> Self {
        Self { left: times, waited: 0 }
    }

    /// How long to wait after an error; `None` where it is final. There is nothing to wait for where another replica
    /// was not tried.
    pub(crate) fn pause(&mut self, error: &ClientError, is_replica_left: bool) -> Option<Duration> {
        self.left = self.left.checked_sub(1)?;
        let asked = error.refusal().and_then(Refusal::retry_after);
        match error.code()? {
            Code::Unavailable if is_replica_left => Some(Duration::ZERO),
            Code::Unavailable => {
                let pause = FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(self.waited));
                self.waited += 1;
                Some(spread(pause.max(asked.unwrap_or_default())))
            }
            Code::ResourceExhausted => asked.map(spread),
            _ => None,
        }
    }
}

/// Somewhat more, so that those who were refused together do not come back together.
fn spread(pause: Duration) -> Duration {
    pause.saturating_add(pause.div_f64(2.0).mul_f64(fastrand::f64()))
}

#[cfg(test)]
mod tests {
    use tonic::Status;
    use tonic_types::{ErrorDetails, StatusExt as _};

    use super::*;

    fn refused(code: Code, retry_after: Option<Duration>) -> ClientError {
        let mut details = ErrorDetails::new();
        if let Some(delay) = retry_after {
            details.set_retry_info(Some(delay));
        }
        Status::with_error_details(code, "", details).into()
    }

    fn is_spread(pause: Option<Duration>, milliseconds: u64) -> bool {
        let shortest = Duration::from_millis(milliseconds);
        pause.is_some_and(|pause| (shortest..=shortest * 3 / 2).contains(&pause))
    }

    #[test]
    fn an_unavailable_server_is_tried_after_ever_longer_pauses() {
        let (error, mut retries) = (refused(Code::Unavailable, None), Retries::new(4));
        for milliseconds in [100, 200, 400, 800] {
            let pause = retries.pause(&error, false);
            assert!(is_spread(pause, milliseconds), "{pause:?}");
        }
        assert_eq!(retries.pause(&error, false), None);
    }

    #[test]
    fn another_replica_is_tried_at_once_and_counts() {
        let (error, mut retries) = (refused(Code::Unavailable, None), Retries::new(3));
        assert_eq!(retries.pause(&error, true), Some(Duration::ZERO));
        assert_eq!(retries.pause(&error, true), Some(Duration::ZERO));
        assert!(is_spread(retries.pause(&error, false), 100));
        assert_eq!(retries.pause(&error, true), None);
    }

    #[test]
    fn a_server_that_tells_when_is_waited_for_so_long() {
        let delay = Some(Duration::from_secs(2));
        for code in [Code::ResourceExhausted, Code::Unavailable] {
            let pause = Retries::new(1).pause(&refused(code, delay), false);
            assert!(is_spread(pause, 2000), "{code:?} {pause:?}");
        }
        let endless = refused(Code::ResourceExhausted, Some(Duration::from_secs(i64::MAX.unsigned_abs())));
        assert!(Retries::new(1).pause(&endless, false).is_some());
    }

    #[test]
    fn everything_else_is_final() {
        assert_eq!(Retries::new(4).pause(&refused(Code::ResourceExhausted, None), true), None);
        let delay = Some(Duration::from_millis(20));
        for code in [
            Code::InvalidArgument,
            Code::FailedPrecondition,
            Code::NotFound,
            Code::DeadlineExceeded,
            Code::Cancelled,
            Code::Internal,
        ] {
            assert_eq!(Retries::new(4).pause(&refused(code, delay), true), None, "{code:?}");
        }
        assert_eq!(Retries::new(4).pause(&ClientError::Answer("it is empty"), true), None);
    }
}
