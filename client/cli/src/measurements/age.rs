//! `--older-than`, which selects measurements by the time of their report.

use std::time::{Duration, SystemTime};

use clap::Args;
use hlorank_arguments::positive_duration;
use prost_types::Timestamp;

use crate::error::CommandError;

/// The age of the measurements that a command is about.
#[derive(Debug, Args)]
pub(crate) struct Age {
    /// Only those that were reported longer ago than this
    ///
    /// In seconds, or with a unit, such as 12h or 90d.
    #[arg(long, value_name = "TIME", value_parser = positive_duration)]
    older_than: Option<Duration>,
}

impl Age {
    /// Returns the time before which the measurements were reported, in seconds since 1970; 0 if they are of any age.
    pub(super) fn reported_before(&self) -> Result<u64, CommandError> {
        let Some(age) = self.older_than else {
            return Ok(0);
        };
        let time = u64::try_from(Timestamp::from(now() - age).seconds);
        // 0 would stand for measurements of any age.
        time.ok().filter(|time| *time > 0).ok_or_else(|| {
            let problem =
                "--older-than: the clock of this computer shows a time that is too early; set it";
            CommandError::Input(problem.to_owned())
        })
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "servers date reports by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the date and the time of a report in UTC.
pub(crate) fn shown(reported_at: u64) -> String {
    let seconds = i64::try_from(reported_at).unwrap_or(i64::MAX);
    Timestamp { seconds, nanos: 0 }.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_shown_in_utc() {
        assert_eq!(shown(1_777_593_600), "2026-05-01T00:00:00Z");
    }

    #[test]
    fn an_age_counts_back_from_now() {
        let age = Age {
            older_than: Some(Duration::from_hours(24 * 90)),
        };
        let today = u64::try_from(Timestamp::from(now()).seconds).unwrap();
        let before = age.reported_before().unwrap();
        assert!((today - 7_776_001..=today - 7_775_000).contains(&before));
    }
}
