//! Graphs pruned and cut into segments.

mod prune;
mod segmented_graph;

pub use self::{
    prune::{PrunedGraph, prune},
    segmented_graph::{MAX_SEGMENT_NODES, Occurrence, SegmentedGraph, Summary},
};
