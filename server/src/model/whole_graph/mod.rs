//! Whole-graph models: the whole graph, or what pruning keeps of it, with some configurations at a time.

mod model;
mod permutations;
mod settings;

pub use model::{WholeGraphInput, WholeGraphModel};
pub use permutations::Permutations;
pub use settings::{Chunking, ModelNodes, WholeGraphSettings};
pub(super) use settings::{MODEL, WrittenWholeGraph};
