//! The audit log: one line with the target `audit` for each change of what the server serves or keeps, made or refused.

use hlorank_graph::Digest;
use tonic::Code;

use crate::{
    metrics::code_name,
    refusal::{Reason, Refused},
};

/// What a change is about, as far as its call says so or the server finds out.
#[derive(Clone, Debug, Default)]
pub(crate) struct AuditedChange {
    pub(crate) model: Option<String>,
    /// Namespace and key of a decision.
    pub(crate) decision: Option<String>,
    /// The version, or the generation of a decision, that the change names or leads to.
    pub(crate) version: Option<u64>,
    /// Percentage of the graphs for a canary.
    pub(crate) percent: Option<u32>,
    pub(crate) target: Option<String>,
    pub(crate) graph: Option<Digest>,
    /// The client whose measurements are changed.
    pub(crate) reporter: Option<String>,
    /// The time before which measurements were reported, in seconds since the Unix epoch.
    pub(crate) reported_before: Option<u64>,
    /// Number of measurements that were changed.
    pub(crate) measurements: Option<u64>,
}

impl AuditedChange {
    /// A change of which versions of a model serve.
    pub(crate) fn of_model(name: &str) -> Self {
        Self {
            model: Some(name.to_owned()),
            ..Self::default()
        }
    }
}

/// How a change ended: the gRPC status, and the reason of a failure.
pub(crate) type AuditOutcome<'a> = (Code, Option<&'a str>);

/// Returns how a change ended.
pub(crate) fn outcome<E: Refused>(changed: &Result<(), E>) -> AuditOutcome<'static> {
    let reason = changed.as_ref().err().map(|error| error.refusal().reason);
    (
        reason.map_or(Code::Ok, Reason::code),
        reason.map(Reason::name),
    )
}

/// Maximum length of a name in the audit log, in bytes. Names of what exists are shorter.
const MAX_NAME_BYTES: usize = 512;

/// Logs a change. `client` is `None` for one that the server makes by itself.
pub(crate) fn audit(
    action: &str,
    client: Option<&str>,
    change: &AuditedChange,
    (code, reason): AuditOutcome<'_>,
) {
    let bounded = |name: &'_ Option<String>| {
        name.as_ref()
            .map(|name| name[..name.floor_char_boundary(MAX_NAME_BYTES)].to_owned())
    };
    tracing::info!(
        target: "audit",
        action,
        client,
        model = bounded(&change.model),
        decision = bounded(&change.decision),
        version = change.version,
        percent = change.percent,
        target = bounded(&change.target),
        graph = change.graph.map(tracing::field::display),
        reporter = bounded(&change.reporter),
        reported_before = change.reported_before,
        measurements = change.measurements,
        code = code_name(code),
        reason,
        "change ended"
    );
}
