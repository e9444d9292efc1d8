//! Segment models: an encoder for the rows of a graph's segments, and a head for the sums of their embeddings.

mod entries;
mod model;
mod tensors;

pub(super) use model::Sessions;
pub use model::{EncoderInput, SegmentModel};
pub use tensors::SegmentTensors;
