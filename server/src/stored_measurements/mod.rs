//! The measurements that clients reported: how they are kept with their graphs, read again, and replayed through any model.

mod replay;
mod stored;

pub(crate) use replay::MeasuredList;
pub(crate) use stored::{StoredMeasurements, measurement_bytes, read_canonical};
