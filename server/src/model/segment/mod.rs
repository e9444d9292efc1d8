//! Segment models: an encoder for the rows of a graph's segments, and a head for the sums of their embeddings.

mod model;
mod settings;

pub(super) use model::Sessions;
pub use model::{EncoderInput, SegmentModel};
pub use settings::SegmentSettings;
pub(super) use settings::WrittenSegment;
