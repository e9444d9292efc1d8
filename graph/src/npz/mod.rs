//! `TpuGraphs`' npz files (spec §7): graphs, configurations and run times as arrays.

mod npy;
mod section;
mod write;

pub(crate) use section::read_npz;
pub use section::{GoldenCase, read_exported, read_golden_cases};
pub use write::FeatureFile;
