//! Configurations of graphs of a named feature set: columns for every node.

mod batch;
mod describe;
mod distinct_rows;
mod encoded;
mod facts;
mod forms;
mod rows;
mod wire;

pub use batch::NodeFeatureBatch;
pub(super) use encoded::{NODE_FEATURES, column_count};
pub(super) use facts::KIND;
