//! Configurations of graphs of a named feature set: columns for every node.

mod batch;
mod canonical;
mod describe;
mod distinct_rows;
mod encoded;
mod facts;
mod forms;
mod rows;
mod table;
mod wire;

pub use batch::NodeFeatureBatch;
