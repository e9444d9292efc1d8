use hlorank_graph::Digest;
use hlorank_proto::v1::{self, ReportMeasurementsRequest, ReportMeasurementsResponse, Warning};
use prost::bytes::Bytes;

use crate::{Adapt, InvalidAnswer, answer::graph_hash};

/// What came of a report of measurements. All of them are on the server's disk.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportOutcome {
    /// Number of measurements that are new.
    pub accepted: u32,
    /// Number of measurements that were reported before.
    pub known: u32,
    /// The graph hash.
    pub graph_hash: Digest,
    /// Unusual properties of the graph that the server accepted.
    pub warnings: Vec<Warning>,
}

/// What a report says about all of its measurements. Empty fields say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportDetails {
    /// Who measured, if it was not the client itself: one of [`GraphMeasurements::reporters`](v1::GraphMeasurements::reporters)
    /// of another server. If the server has tokens, the client's needs the scope `admin`, too.
    pub reporter: String,
    /// When each was reported, in seconds since 1970, which needs that scope, too; empty for now.
    pub reported_at: Vec<u64>,
    /// The machine that measured.
    pub machine: String,
    /// The lease of each.
    pub leases: Vec<Bytes>,
    /// The search of the leases.
    pub search: String,
}

impl ReportOutcome {
    pub(crate) fn from_answer(answer: ReportMeasurementsResponse) -> Result<Self, InvalidAnswer> {
        Ok(Self {
            accepted: answer.accepted,
            known: answer.known,
            graph_hash: graph_hash(&answer.graph_hash)?,
            warnings: answer.warnings,
        })
    }
}

impl ReportDetails {
    /// Returns the message that reports the measurements of `adapt`.
    pub(crate) fn message(&self, adapt: &Adapt, graph: v1::Graph) -> ReportMeasurementsRequest {
        let adapt = adapt.message();
        ReportMeasurementsRequest {
            graph: Some(graph),
            target: adapt.target,
            batch: adapt.batch,
            seconds: adapt.seconds,
            repeats: adapt.repeats,
            failures: adapt.failures,
            ids: adapt.ids,
            reporter: self.reporter.clone(),
            reported_at: self.reported_at.clone(),
            leases: self.leases.clone(),
            search: self.search.clone(),
            machine: self.machine.clone(),
        }
    }
}
