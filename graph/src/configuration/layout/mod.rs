//! Layout configurations: one entry per configurable node.

mod batch;
mod delta;
mod describe;
mod entry;
mod facts;
mod forms;
mod rows;
mod wire;

pub use batch::{LayoutBatch, LayoutBatchBuilder};
pub use entry::{LAYOUT_VALUES, LayoutEntry};
pub(super) use facts::KIND;
