//! What every part of a call shares: who makes it, its place, deadline and record, the limits of what it may send, how the
//! parts of its messages are decoded and its batches are read, and why it fails.

mod batch;
mod context;
mod error;
mod sent_measurements;

pub(crate) use batch::{
    BatchReader, CONFIG_BYTES, Decoder, Position, SMALL_PART_BYTES, class_of, read_batch, work_on,
};
pub use context::{Bounds, Deadline};
pub(crate) use context::{Call, Client};
pub use error::CallError;
pub use sent_measurements::MeasurementError;
pub(crate) use sent_measurements::{
    ADAPT, MAX_LEARNED, MAX_REPORT, REPORT, SentMeasurements, reported_at,
};
