//! Graphs pruned and cut into segments.

mod cutter;
mod occurrence;
mod pieces;
mod prune;
mod segmented_graph;

pub use self::{
    occurrence::Occurrence,
    prune::{Pruned, prune},
    segmented_graph::{MAX_SEGMENT_NODES, SegmentedGraph, Summary},
};
