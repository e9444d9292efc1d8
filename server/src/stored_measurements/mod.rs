//! The measurements that clients reported: how they are kept with their graphs, read again, and replayed through any model.

mod bytes;
mod canonical;
mod kept_graph;
mod replay;
mod report;
mod stored;

pub(crate) use bytes::measurement_bytes;
pub(crate) use canonical::read_canonical;
pub(crate) use replay::MeasuredList;
pub(crate) use stored::StoredMeasurements;
