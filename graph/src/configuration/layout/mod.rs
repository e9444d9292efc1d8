//! Layout configurations: one entry per configurable node.

mod batch;
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
pub(super) use delta::DELTA_LAYOUTS;
pub(super) use encoded::{PACKED_LAYOUTS, READABLE_LAYOUTS};
pub use entry::{LAYOUT_VALUES, LayoutEntry};
pub(super) use facts::KIND;
