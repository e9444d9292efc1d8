use hlorank_proto::v1::DecisionEvidence;
use prost::Message as _;
use serde::Serialize;

use crate::{leases::LeaseError, store::StoredDecision};

/// A decision, as the status page shows it.
#[derive(Debug, Serialize)]
pub(crate) struct DecisionSummary {
    /// The start of its value, or why it could not be read.
    value: String,
    seconds: f64,
    runs: u32,
    measured_configs: u32,
    machine: String,
}

/// Maximum number of characters of a value that are shown.
const SHOWN: usize = 200;

impl DecisionSummary {
    pub(crate) fn unreadable(error: &LeaseError) -> Self {
        Self {
            value: error.to_string(),
            seconds: 0.0,
            runs: 0,
            measured_configs: 0,
            machine: String::new(),
        }
    }
}

impl From<StoredDecision> for DecisionSummary {
    fn from(decision: StoredDecision) -> Self {
        let value = String::from_utf8_lossy(&decision.value);
        let evidence = DecisionEvidence::decode(&*decision.evidence).unwrap_or_default();
        Self {
            value: value.chars().take(SHOWN).collect(),
            seconds: evidence.seconds,
            runs: evidence.runs,
            measured_configs: evidence.measured_configs,
            machine: evidence.machine,
        }
    }
}
