//! Fusion configurations: one bit per slot of a program before fusion.

mod batch;
mod kind;
pub(super) mod wire;

pub use batch::FusionBatch;
