//! Layout configurations: one entry per configurable node.

mod batch;
mod canonical;
mod check;
mod delta;
mod describe;
mod encoded;
mod entry;
mod facts;
mod forms;
mod met;
mod rows;
mod wire;

pub use batch::{LayoutBatch, LayoutBatchBuilder};
pub use entry::{LAYOUT_VALUES, LayoutEntry};
