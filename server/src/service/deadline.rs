//! The deadline of a stream. Tonic's own ends with the headers of an answer, which a stream sends at once.

use std::time::Duration;

use futures::{Stream, StreamExt, stream};
use tokio::time::{Instant, timeout_at};
use tonic::{Status, metadata::MetadataMap};

use super::ServiceError;

/// How long a call may take, as its `grpc-timeout` says: at most eight digits and a unit.
pub(super) fn time_allowed(metadata: &MetadataMap) -> Option<Duration> {
    let text = metadata.get("grpc-timeout")?.to_str().ok()?;
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.len() > 8 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
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

/// The answers until so much time has passed, then the refusal.
pub(super) fn within<T>(
    allowed: Duration,
    answers: impl Stream<Item = Result<T, Status>> + Unpin,
) -> impl Stream<Item = Result<T, Status>> {
    let deadline = Instant::now() + allowed;
    stream::try_unfold(answers, move |mut answers| async move {
        match timeout_at(deadline, answers.next()).await {
            Ok(answer) => Ok(answer.transpose()?.map(|answer| (answer, answers))),
            Err(_) => Err(ServiceError::DeadlineExceeded { allowed }.into()),
        }
    })
}

#[cfg(test)]
mod tests {
    use tonic::Code;

    use super::*;

    fn allowed(timeout: &'static str) -> Option<Duration> {
        let mut metadata = MetadataMap::new();
        metadata.insert("grpc-timeout", timeout.parse().unwrap());
        time_allowed(&metadata)
    }

    #[test]
    fn a_timeout_has_a_unit() {
        assert_eq!(allowed("2H"), Some(Duration::from_hours(2)));
        assert_eq!(allowed("15M"), Some(Duration::from_mins(15)));
        assert_eq!(allowed("3S"), Some(Duration::from_secs(3)));
        assert_eq!(allowed("150m"), Some(Duration::from_millis(150)));
        assert_eq!(allowed("7u"), Some(Duration::from_micros(7)));
        assert_eq!(allowed("99999999n"), Some(Duration::from_nanos(99_999_999)));
        for wrong in ["", "1", "S", "1x", "-1S", "100000000S", "1.5S"] {
            assert_eq!(allowed(wrong), None, "{wrong}");
        }
        assert_eq!(time_allowed(&MetadataMap::new()), None);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_end_at_the_deadline() {
        let every_second = stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Some((Ok::<_, Status>(1), ()))
        });
        let mut answers = Box::pin(within(Duration::from_millis(2500), Box::pin(every_second)));
        assert!(answers.next().await.unwrap().is_ok());
        assert!(answers.next().await.unwrap().is_ok());
        assert_eq!(answers.next().await.unwrap().unwrap_err().code(), Code::DeadlineExceeded);
        assert!(answers.next().await.is_none());
    }
}
