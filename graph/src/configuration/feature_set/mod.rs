//! Configurations of graphs of a named feature set: columns for every node.

mod batch;
mod kind;
pub(super) mod wire;

pub use batch::NodeFeatureBatch;
