//! `--older-than` and `--before`, which select measurements by the time of their report.

use std::{
    num::NonZeroU64,
    time::{Duration, SystemTime},
};

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
    #[arg(
        long,
        value_name = "TIME",
        value_parser = positive_duration,
        conflicts_with = "before"
    )]
    older_than: Option<Duration>,
    /// Only those that were reported before this date or time
    ///
    /// Such as 2026-05-01, which begins at midnight UTC, or 2026-05-01T12:00:00+02:00.
    #[arg(long, value_name = "DATE", value_parser = date)]
    before: Option<NonZeroU64>,
}

impl Age {
    /// Returns the time before which the measurements were reported, in seconds since 1970; 0 if they are of any age.
    pub(super) fn reported_before(&self) -> Result<u64, CommandError> {
        let Some(age) = self.older_than else {
            return Ok(self.before.map_or(0, NonZeroU64::get));
        };
        let time = seconds_of(Timestamp::from(now() - age));
        let time = time.ok_or_else(|| {
            CommandError::Input(
                "--older-than: the clock of this computer shows a time that is too early; set it, or pass --before"
                    .to_owned(),
            )
        });
        time.map(NonZeroU64::get)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "servers date reports by the wall clock"
)]
fn now() -> SystemTime {
    SystemTime::now()
}

fn date(text: &str) -> Result<NonZeroU64, &'static str> {
    let time = text.parse().ok().and_then(seconds_of);
    time.ok_or("expected a date after 1970-01-01, alone or with a time and its zone, such as 2026-05-01 or 2026-05-01T12:00:00Z")
}

fn seconds_of(time: Timestamp) -> Option<NonZeroU64> {
    NonZeroU64::new(u64::try_from(time.seconds).ok()?)
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
    fn dates_and_times_are_seconds_since_1970() {
        for (text, seconds) in [
            ("2026-05-01", 1_777_593_600),
            ("2026-05-01T00:00:00Z", 1_777_593_600),
            ("2026-05-01T12:00:00+02:00", 1_777_629_600),
            ("1970-01-01T00:00:01Z", 1),
        ] {
            assert_eq!(date(text).map(NonZeroU64::get), Ok(seconds), "{text}");
        }
        // The time 0 on the wire stands for all measurements.
        for text in [
            "",
            "90d",
            "1970-01-01",
            "1950-05-01",
            "2026-13-01",
            "2026-05-01T12",
            "1777593600",
        ] {
            assert!(date(text).is_err(), "{text}");
        }
        assert_eq!(shown(1_777_593_600), "2026-05-01T00:00:00Z");
    }

    #[test]
    fn an_age_counts_back_from_now() {
        let age = Age {
            older_than: Some(Duration::from_hours(24 * 90)),
            before: None,
        };
        let today = seconds_of(Timestamp::from(now())).unwrap().get();
        let before = age.reported_before().unwrap();
        assert!((today - 7_776_001..=today - 7_775_000).contains(&before));
    }
}
