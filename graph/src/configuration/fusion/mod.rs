//! Fusion configurations: one bit per slot of a program before fusion.

mod batch;
mod canonical;
mod describe;
mod encoded;
mod facts;
mod forms;
mod rows;
mod wire;

pub use batch::FusionBatch;
