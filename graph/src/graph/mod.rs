//! Graphs: their arrays, and the checks that every graph passes.

mod arrays;
mod checked;
mod edges;
mod feature_graph;
mod message;
mod range;

pub use self::{arrays::GraphArrays, checked::Graph, feature_graph::FeatureGraph};
