//! Deadlines that calls state in `grpc-timeout`. They expire slightly early, so that the error reason reaches the client
//! before its own deadline.

use std::time::Duration;

use axum::{extract::Request, middleware::Next, response::Response};
use futures::{Stream, StreamExt, stream};
use http::HeaderMap;
use tokio::time::{Instant, timeout_at};
use tonic::Status;

use crate::{
    call::{CallError, Deadline},
    errors::{ServiceError, rejected},
    translations::read_header,
};

/// How much earlier than its deadline a call ends. Timers tick every millisecond.
const EARLY_MARGIN: Duration = Duration::from_millis(1);

/// Ends a call at its deadline, which handlers find among the extensions of the request.
pub(crate) async fn end_at_deadline(mut request: Request, next: Next) -> Response {
    let deadline = match read_deadline(request.headers()) {
        Ok(Some(deadline)) => deadline,
        Ok(None) => return next.run(request).await,
        Err(error) => return rejected(error),
    };
    request.extensions_mut().insert(deadline);
    // Dropping the handler at its deadline drops the work of the call that has not started.
    let answered = timeout_at(deadline.end, next.run(request)).await;
    answered.unwrap_or_else(|_| rejected(exceeded(deadline)))
}

/// Returns the deadline of a call with these headers that begins now. It is an error if no time is
/// left until then.
fn read_deadline(headers: &HeaderMap) -> Result<Option<Deadline>, ServiceError> {
    let Some(allowed) = time_allowed(headers)? else {
        return Ok(None);
    };
    let end = Instant::now() + allowed.saturating_sub(EARLY_MARGIN);
    let deadline = Deadline { end, allowed };
    if deadline.left().is_zero() {
        return Err(exceeded(deadline).into());
    }
    Ok(Some(deadline))
}

fn exceeded(deadline: Deadline) -> CallError {
    let allowed = deadline.allowed;
    CallError::DeadlineExceeded { allowed }
}

/// Returns the answers until the deadline, and then the error that it was exceeded.
pub(crate) fn end_at<T>(
    deadline: Deadline,
    answers: impl Stream<Item = Result<T, Status>> + Unpin,
) -> impl Stream<Item = Result<T, Status>> {
    // `try_unfold` ends after an error, which drops the answers and the work behind them.
    stream::try_unfold(answers, move |mut answers| async move {
        match timeout_at(deadline.end, answers.next()).await {
            Ok(answer) => Ok(answer.transpose()?.map(|answer| (answer, answers))),
            Err(_) => Err(exceeded(deadline).into()),
        }
    })
}

/// Reads the time that `grpc-timeout` allows, or `connect-timeout-ms`, which clients of the Connect protocol send; the shorter
/// of both.
fn time_allowed(headers: &HeaderMap) -> Result<Option<Duration>, ServiceError> {
    let expected = "at most eight digits and a unit, such as 5S or 250m; units \
                    are H, M, S, m (milliseconds), u and n";
    let grpc = read_header(headers, "grpc-timeout", grpc_timeout, expected)?;
    let expected = "milliseconds in at most ten digits";
    let connect = read_header(headers, "connect-timeout-ms", connect_timeout, expected)?;
    Ok(grpc.into_iter().chain(connect).min())
}

fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let count = whole_number(digits, 8)?;
    match unit {
        "H" => Some(Duration::from_hours(count)),
        "M" => Some(Duration::from_mins(count)),
        "S" => Some(Duration::from_secs(count)),
        "m" => Some(Duration::from_millis(count)),
        "u" => Some(Duration::from_micros(count)),
        "n" => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

fn connect_timeout(text: &str) -> Option<Duration> {
    whole_number(text, 10).map(Duration::from_millis)
}

/// Reads a number of at most this many digits, without a sign.
fn whole_number(digits: &str, max_digits: usize) -> Option<u64> {
    // The parser of integers takes a sign, which the protocols do not have.
    let is_number = digits.len() <= max_digits && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn};
    use http::HeaderValue;
    use tonic::Code;
    use tower::ServiceExt as _;

    use super::*;

    fn headers(timeout: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-timeout"),
            HeaderValue::from_static(timeout),
        )])
    }

    #[test]
    fn a_timeout_has_a_unit() {
        let allowed = |timeout| time_allowed(&headers(timeout)).unwrap();
        assert_eq!(allowed("2H"), Some(Duration::from_hours(2)));
        assert_eq!(allowed("15M"), Some(Duration::from_mins(15)));
        assert_eq!(allowed("3S"), Some(Duration::from_secs(3)));
        assert_eq!(allowed("150m"), Some(Duration::from_millis(150)));
        assert_eq!(allowed("7u"), Some(Duration::from_micros(7)));
        assert_eq!(allowed("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for wrong in [
            "",
            "1",
            "S",
            "1x",
            "1s",
            "1ms",
            "-1S",
            "+1S",
            "100000000S",
            "1.5S",
            " 1S",
            "1S, 1S",
        ] {
            let refused = time_allowed(&headers(wrong)).unwrap_err().to_string();
            assert!(
                refused.contains("grpc-timeout") && refused.contains("5S or 250m"),
                "{wrong}: {refused}"
            );
        }
        assert_eq!(time_allowed(&HeaderMap::new()).unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_ends_slightly_before_its_deadline() {
        let slow = async || tokio::time::sleep(Duration::from_secs(2)).await;
        let layered = Router::new().fallback(slow).layer(from_fn(end_at_deadline));
        let mut request = Request::new(Body::empty());
        *request.headers_mut() = headers("1500m");
        let started = Instant::now();
        let response = layered.oneshot(request).await.unwrap();
        let took = started.elapsed();
        let status = Status::from_header_map(response.headers()).unwrap();
        assert_eq!(status.code(), Code::DeadlineExceeded);
        assert!((1400..1500).contains(&took.as_millis()), "{took:?}");
    }
}
