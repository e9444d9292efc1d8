use std::num::NonZeroU64;

use hlorank_graph::Digest;
use hlorank_proto::v1::{
    self, DeleteMeasurementsRequest, GraphMeasurements, ListMeasurementsRequest,
    ReportMeasurementsRequest, ReportMeasurementsResponse, Warning,
};
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
    /// Who measured, if it was not the client itself.
    pub reporter: String,
    /// When each was reported, in seconds since 1970; empty for now.
    pub reported_at: Vec<u64>,
    /// The machine that measured.
    pub machine: String,
    /// The lease of each.
    pub leases: Vec<Bytes>,
    /// The search of the leases.
    pub search: String,
}

/// A part of the measurements that a server keeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeasurementsPage {
    /// The measurements by target, graph hash and configuration.
    pub graphs: Vec<GraphMeasurements>,
    /// What to pass on for the next page; empty if this is the last one.
    pub next: Vec<u8>,
}

/// The measurements to list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementsOf<'a> {
    /// All that the server keeps.
    All,
    /// Those of all graphs on a target.
    Target(&'a str),
    /// Those of one graph on a target.
    Graph(&'a str, Digest),
}

/// The measurements to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deletion<'a> {
    /// All, if they were reported before a time.
    All,
    /// Those of all graphs on a target.
    Target(&'a str),
    /// Those of one graph on a target.
    Graph(&'a str, Digest),
    /// Those of a reporter, as [`GraphMeasurements::reporters`] has it, on a target.
    ReporterOnTarget(&'a str, &'a str),
    /// Those of a reporter on all targets.
    Reporter(&'a str),
}

impl Deletion<'_> {
    pub(crate) fn message(&self, before: Option<NonZeroU64>) -> DeleteMeasurementsRequest {
        let (target, graph, reporter) = match *self {
            Self::All => ("", None, ""),
            Self::Target(target) => (target, None, ""),
            Self::Graph(target, graph) => (target, Some(graph), ""),
            Self::ReporterOnTarget(reporter, target) => (target, None, reporter),
            Self::Reporter(reporter) => ("", None, reporter),
        };
        DeleteMeasurementsRequest {
            target: target.to_owned(),
            graph_hash: graph.map_or_else(Bytes::new, |graph| graph.0.to_vec().into()),
            reporter: reporter.to_owned(),
            reported_before: before.map_or(0, NonZeroU64::get),
        }
    }
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

impl MeasurementsOf<'_> {
    pub(crate) fn list(&self, before: Option<NonZeroU64>, after: &[u8]) -> ListMeasurementsRequest {
        let (target, graph_hash) = match *self {
            Self::All => (String::new(), Bytes::new()),
            Self::Target(target) => (target.to_owned(), Bytes::new()),
            Self::Graph(target, graph) => (target.to_owned(), graph.0.to_vec().into()),
        };
        ListMeasurementsRequest {
            target,
            graph_hash,
            page_size: 0,
            page_token: after.to_vec().into(),
            reported_before: before.map_or(0, NonZeroU64::get),
        }
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
