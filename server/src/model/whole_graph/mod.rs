//! Whole-graph models: the whole graph, unpruned, with some configurations at a time.

mod interrupt;
mod model;
mod settings;

pub use interrupt::Interrupt;
pub use model::{WholeGraphInput, WholeGraphModel};
pub use settings::WholeGraphSettings;
pub(super) use settings::{MODEL, WrittenWholeGraph};
