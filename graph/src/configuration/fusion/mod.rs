//! Fusion configurations: one bit per slot of a program before fusion.

mod batch;
mod describe;
mod encoded;
mod facts;
mod forms;
mod rows;
mod wire;

pub use batch::FusionBatch;
pub(super) use encoded::{DELTA_FUSIONS, PACKED_FUSIONS, READABLE_FUSIONS};
pub(super) use facts::KIND;
