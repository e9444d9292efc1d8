//! A call: its place, its record, its deadline, who makes it, and the bounds of what it may send.

use std::time::Duration;

use hlorank_graph::Limits;
use tokio::time::Instant;

use crate::{admission::Place, store::Reporter, telemetry::CallRecord};

/// What the parts of a call need to know about it.
pub(crate) struct Call {
    pub(crate) place: Place,
    pub(crate) record: CallRecord,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) client: Client,
}

/// Who makes a call, as far as it concerns measurements.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// What its measurements are kept under.
    pub(crate) reporter: Reporter,
    /// Whether it may do what needs the scope `admin`: its token has that, or the server has no tokens.
    pub(crate) is_admin: bool,
    /// Whether it may do what needs the scope `report`, likewise.
    pub(crate) may_report: bool,
}

impl Client {
    /// The name of a reporter, if the client may know it; otherwise nothing.
    pub(crate) fn shown<'a>(&self, reporter: &'a Reporter) -> &'a str {
        // A reporter is a token's name or an address, which other clients must not learn.
        if self.is_admin || *reporter == self.reporter {
            reporter.name()
        } else {
            ""
        }
    }
}

/// The deadline of a call.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    /// When the call ends.
    pub end: Instant,
    /// Time that the client allowed for the call.
    pub allowed: Duration,
}

impl Deadline {
    /// Returns when the call ends, for code that does not use tokio's clock.
    #[must_use]
    pub fn instant(self) -> std::time::Instant {
        self.end.into_std()
    }

    /// Returns the time left until the deadline.
    #[must_use]
    pub fn left(self) -> Duration {
        self.end.saturating_duration_since(Instant::now())
    }
}

/// Limits on what calls may send.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Limits on a graph and on a batch.
    pub limits: Limits,
    /// Maximum number of bytes of one serialized module or HLO text.
    pub graph_bytes: usize,
    /// Maximum number of configurations of one stream.
    pub stream_configs: usize,
}
