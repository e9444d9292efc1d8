//! Scoring sessions: the one way from a call to scores.
//!
//! A [`Session`] belongs to one call. It holds the call's model, graph, place among the requests, memory, deadline and
//! record, and it scores batches one after the other. A unary call is one batch, a stream is many, and a partial ranking
//! is a prefix of one.
//!
//! `service` reads messages and writes answers around a session; `engine` evaluates its batches.

mod adapt;
mod bounds;
mod call;
mod client;
mod confidence;
mod deadline;
mod decode;
mod error;
mod graph_source;
mod judge;
mod kept_graph;
mod limit;
mod measurements;
mod partial;
mod pool;
mod read_graph;
mod replay;
mod score;
mod search;
mod sessions;
mod space;
mod stored;
mod suggest;

pub(crate) use adapt::Adaptation;
pub use bounds::Bounds;
pub(crate) use call::Call;
pub(crate) use client::{Client, WantedStored};
pub(crate) use confidence::Assessment;
pub use deadline::Deadline;
pub use error::SessionError;
pub(crate) use graph_source::{GraphContent, GraphOrigin, SentGraph};
pub(crate) use judge::Contradiction;
pub(crate) use limit::Limit;
pub use measurements::MeasurementError;
pub(crate) use measurements::{
    ADAPT, MAX_REPORT, MeasurementFields, REPORT, SentMeasurements, SentTimes,
};
pub(crate) use replay::MeasuredList;
pub(crate) use score::{Ranked, Session, answer_bytes};
pub use sessions::Sessions;
pub(crate) use sessions::{FoundGraph, SelectedModel};
pub(crate) use space::Combined;
pub(crate) use suggest::Suggested;
