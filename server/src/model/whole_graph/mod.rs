//! Whole-graph models: the whole graph, unpruned, with some configurations at a time.

mod model;
mod settings;

pub use model::{WholeGraphInput, WholeGraphModel};
pub use settings::WholeGraphSettings;
pub(super) use settings::{MODEL, WrittenWholeGraph};
