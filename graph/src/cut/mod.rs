//! Graphs pruned and cut into segments.

mod cutter;
mod prune;
mod segmented_graph;

pub use self::{
    cutter::Occurrence,
    prune::{Pruned, prune},
    segmented_graph::{MAX_SEGMENT_NODES, SegmentedGraph, Summary},
};
