//! Pruned graphs cut into segments.

mod cutter;
mod occurrence;
mod pieces;
mod segment;
mod segmented_graph;

pub use self::{
    occurrence::Occurrence,
    segment::Segment,
    segmented_graph::{MAX_SEGMENT_NODES, SegmentedGraph, Summary},
};
