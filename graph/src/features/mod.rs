//! The 140 node features of `TpuGraphs` (spec §4).
//!
//! All arithmetic is on `i64`, wraps on overflow, and is rounded to `f32` at the end.

mod digest;
mod instruction;
mod pad;

pub use digest::feature_digest;
pub(crate) use instruction::{aggregate, featurize};
pub use pad::{Pad, SequenceLengths};

/// Features of a node.
pub const FEATURES: usize = 140;
