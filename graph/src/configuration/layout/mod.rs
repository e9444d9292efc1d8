//! Layout configurations: one entry per configurable node.

mod batch;
mod check;
mod entry;
mod kind;
mod rows;
pub(super) mod wire;

pub use batch::{LayoutBatch, LayoutBatchBuilder};
pub use entry::{LAYOUT_VALUES, LayoutEntry};
