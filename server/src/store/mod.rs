//! The store of measurements: the run times that clients reported, kept in a file or a database for later calls.
//!
//! A set that grows until someone deletes from it. The key of a measurement is its target, graph, configuration, id and
//! reporter, so that the union of two sets is one set, in whatever order they came, and no client takes the place of
//! another's measurement. A report is acknowledged once it is on disk. The
//! file is a redb database, whose pages have checksums, and which is locked while it is open. A PostgreSQL database is shared
//! by several servers.
//!
//! With the first measurement of a graph on a target comes the graph itself, so that measurements can be replayed through a
//! model that no call sends the graph to.
//!
//! Beside the measurements lie decisions: which configuration a key of a tuner has on a target. The first one that is proposed
//! answers for ever, unless an admin supersedes it; nothing else changes or deletes one. Leases and claims are no part of the file;
//! servers that share a database share them as rows there.
//!
//! Wire messages and models are unknown here. Configurations are kept in their canonical bytes, and graphs in those of their
//! message.

mod changes;
mod decision;
mod error;
mod file;
mod key;
mod location;
mod measurement;
mod measurement_store;
mod postgres;
mod report;
mod retention;
mod shared_leases;
mod target_parts;

pub use changes::MeasurementChange;
pub use decision::{
    DecisionFilter, DecisionLookup, DecisionPage, DecisionProposal, DecisionSubject, DecisionView,
    ReaderDecisions, StoredDecision,
};
pub use error::{OpenStoreError, StoreError, StoreFault};
#[cfg(test)]
pub(crate) use file::simulated::polled;
pub(crate) use key::config_digest;
pub use key::{MeasurementFilter, Reporter, ReporterFilter, Subject};
pub use location::{DatabaseUrl, StoreLocation};
pub use measurement::{
    GraphKind, KeptGraph, MAX_GRAPH_BYTES, Measurement, Outcome, Page, ReportOutcome,
};
pub use measurement_store::MeasurementStore;
pub(crate) use retention::RunningRetention;
pub(crate) use shared_leases::SharedLeases;
pub(crate) use target_parts::different_parts;
pub use target_parts::{TargetFault, canonical_target};

#[cfg(test)]
mod tests;
