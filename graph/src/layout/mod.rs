//! Layout configurations: one entry per configurable node.

mod batch;
mod entry;
mod wire;

pub use batch::{LayoutBatch, LayoutBatchBuilder};
pub use entry::{LAYOUT_VALUES, LayoutEntry};
