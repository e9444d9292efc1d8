/// One place of a graph where a segment occurs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Position in [`SegmentedGraph::segments`](crate::SegmentedGraph::segments).
    pub segment: usize,
    /// The slot of each of [`Segment::configurable`](crate::Segment::configurable). A local configuration is their entries in
    /// this order.
    pub slots: Vec<usize>,
    /// Node numbers, ascending.
    pub nodes: Vec<u32>,
}
