//! Graphs: what a model takes of a module or of a feature set, and the messages of them.

mod checked;
mod feature_graph;
mod message;

pub use self::{checked::Graph, feature_graph::FeatureGraph};
