//! Whole-graph models: the whole graph, or what pruning keeps of it, with some configurations at a time.

mod model;

pub use model::{WholeGraphInput, WholeGraphModel};
