//! Graphs: their arrays, the checks that every graph passes, and the task that it is tuned for.

mod arrays;
mod checked;
mod edges;
mod task;

pub use self::{arrays::GraphArrays, checked::Graph, task::Task};
