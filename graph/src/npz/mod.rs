//! `TpuGraphs`' npz files (spec §7): graphs, configurations and run times as arrays.

mod array;
mod npy;
mod read;
mod section;
mod write;

pub(crate) use read::read_npz;
pub use read::{GoldenCase, read_exported, read_golden_cases};
pub use write::FeatureFile;
