//! What every part of a call shares: who makes it, its place, deadline and record, the limits of what it may send, how the
//! parts of its messages are decoded and its batches are read, and why it fails.

mod batch;
mod bounds;
mod client;
mod context;
mod deadline;
mod decode;
mod error;
mod limit;
mod sent_measurements;

pub(crate) use batch::{BatchReader, CONFIG_BYTES, Position, class_of, read_batch};
pub use bounds::Bounds;
pub(crate) use client::Client;
pub(crate) use context::Call;
pub use deadline::Deadline;
pub(crate) use decode::Decoder;
pub use error::CallError;
pub(crate) use limit::Limit;
pub use sent_measurements::MeasurementError;
pub(crate) use sent_measurements::{
    ADAPT, MAX_LEARNED, MAX_REPORT, MeasurementFields, REPORT, SentMeasurements, SentTimes,
};
