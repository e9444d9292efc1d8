//! Fusion configurations: one bit per slot of a program before fusion.

mod batch;
mod kind;
mod wire;

pub use batch::FusionBatch;
