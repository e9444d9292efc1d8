//! The limits that hold in every row of the table.

use std::time::Duration;

use crate::{
    measure::Measured,
    site::{CONTAINER_BYTES, GRANTED_BYTES},
};

/// Limits of what a well-behaved client sees beside an attack, and of the memory of the server.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    p99: Duration,
    resident_bytes: usize,
}

/// Maximum p99 beside an attack, as a multiple of p99 without one, and in any case.
const SLOWDOWN: u32 = 5;
const MAX_P99: Duration = Duration::from_millis(250);

/// Maximum time until `/readyz` says so after an attack.
const MAX_READY: Duration = Duration::from_secs(1);

impl Limits {
    /// Returns the limits for a client whose calls take this long without an attack.
    pub(crate) fn of(quiet_p99: Duration) -> Self {
        let resident_bytes = (GRANTED_BYTES + GRANTED_BYTES / 4).min(CONTAINER_BYTES);
        Self {
            p99: (SLOWDOWN * quiet_p99).min(MAX_P99),
            resident_bytes,
        }
    }

    /// Returns the limits beside the worst requests of a stage with one worker: a small call may have to wait for the end of a
    /// run.
    pub(crate) fn of_stages(self) -> Self {
        Self {
            p99: MAX_P99,
            ..self
        }
    }

    pub(crate) fn p99(&self) -> Duration {
        self.p99
    }

    pub(crate) fn resident_bytes(&self) -> usize {
        self.resident_bytes
    }

    /// Returns what was beyond a limit.
    pub(crate) fn exceeded(&self, measured: &Measured) -> Vec<String> {
        let seen = &measured.seen;
        let mut exceeded = Vec::new();
        let mut check = |is_so: bool, what: String| exceeded.extend(is_so.then_some(what));
        check(
            measured.peak_bytes.is_none(),
            "the server was killed".to_owned(),
        );
        check(
            !seen.failures.is_empty(),
            format!("{} calls failed", seen.failures.len()),
        );
        check(seen.p99 > self.p99, "p99".to_owned());
        check(
            measured.peak_bytes > Some(self.resident_bytes),
            "memory".to_owned(),
        );
        check(
            measured.ready.is_none_or(|ready| ready > MAX_READY),
            "not ready".to_owned(),
        );
        let changes = measured.changes.unwrap_or_default();
        check(changes.lost > 0, format!("{} changes lost", changes.lost));
        exceeded
    }
}
