use std::collections::HashMap;

use crate::{Digest, FEATURES, Graph, Pad, Pruned, SequenceLengths, Task, hash, prune};

/// Nodes that a segment may have. A larger connected piece is cut into runs of this many nodes in ascending
/// order, and edges between runs are dropped: the same in training and serving.
pub const MAX_SEGMENT_NODES: usize = 512;

/// What the model encodes of a connected piece of the pruned graph; equal pieces are one segment.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// BLAKE3-256 of the canonical form in `graph/README.md`.
    pub digest: Digest,
    /// `[n]` opcode ids.
    pub opcodes: Vec<u8>,
    /// `[n, 140]` features, sequences padded with 0.
    pub features: Vec<f32>,
    /// `[n]` lengths of the sequences, where known.
    pub sequence_lengths: Option<Vec<SequenceLengths>>,
    /// Pairs (consumer, producer) of positions in the segment, sorted.
    pub edges: Vec<[u16; 2]>,
    /// Positions of configurable nodes, ascending.
    pub configurable: Vec<u16>,
}

/// One place of a graph where a segment stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// Position in [`SegmentedGraph::segments`].
    pub segment: usize,
    /// The slot of each of [`Segment::configurable`]: a local configuration is their entries in this order.
    pub slots: Vec<usize>,
    /// Node numbers, ascending.
    pub nodes: Vec<u32>,
}

/// A graph cut into segments: all that a segment model needs of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentedGraph {
    /// The graph hash.
    pub hash: Digest,
    /// What is tuned.
    pub task: Task,
    /// Configurable nodes in slot order; empty for a kernel.
    pub configurable: Vec<u32>,
    /// Segments that differ from each other.
    pub segments: Vec<Segment>,
    /// Where they stand, by first node.
    pub occurrences: Vec<Occurrence>,
    /// Sizes.
    pub summary: Summary,
}

/// Sizes of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Nodes.
    pub nodes: usize,
    /// Edges.
    pub edges: usize,
    /// Configurable nodes.
    pub configurable: usize,
    /// Nodes that pruning keeps.
    pub kept: usize,
    /// Connected pieces of the pruned graph.
    pub segments: usize,
    /// Pieces that differ from each other.
    pub distinct_segments: usize,
    /// Nodes of the largest piece.
    pub largest_segment: usize,
}

impl Segment {
    /// Number of nodes; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a segment has at least one node")]
    pub fn len(&self) -> usize {
        self.opcodes.len()
    }

    /// Whether the model's pad value can be had: always for 0, else only where lengths are known.
    #[must_use]
    pub fn can_pad(&self, pad: Pad) -> bool {
        pad == Pad::Zero || self.sequence_lengths.is_some()
    }

    /// Writes `[n, 140]` features, padded as asked where lengths are known, into `rows`.
    pub fn write_features(&self, pad: Pad, rows: &mut [f32]) {
        rows[..self.features.len()].copy_from_slice(&self.features);
        if pad == Pad::Zero {
            return;
        }
        for (row, lengths) in rows.chunks_exact_mut(FEATURES).zip(self.sequence_lengths.iter().flatten()) {
            lengths.pad_row(row, pad);
        }
    }
}

impl SegmentedGraph {
    /// Prunes a graph and cuts it into segments.
    #[must_use]
    pub fn new(graph: &Graph) -> Self {
        let pruned = prune(graph);
        let mut cutter = Cutter::new(graph, &pruned);
        let pieces = match graph.task() {
            Task::Tile => vec![(0..).take(pruned.nodes.len()).collect()],
            Task::Layout => connected_pieces(&pruned),
        };
        let runs = pieces.iter().flat_map(|piece| piece.chunks(MAX_SEGMENT_NODES));
        let occurrences: Vec<Occurrence> = runs.map(|run| cutter.occurrence(run)).collect();
        let segments = cutter.segments;
        let summary = Summary {
            nodes: graph.len(),
            edges: graph.edges().len(),
            configurable: graph.configurable().len(),
            kept: pruned.nodes.len(),
            segments: occurrences.len(),
            distinct_segments: segments.len(),
            largest_segment: segments.iter().map(Segment::len).max().unwrap_or(0),
        };
        Self {
            hash: graph.hash(),
            task: graph.task(),
            configurable: graph.configurable().to_vec(),
            segments,
            occurrences,
            summary,
        }
    }

    /// Number of configurable nodes.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.configurable.len()
    }

    /// Bytes that this holds, for a cache that is bounded in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let segment = |segment: &Segment| {
            size_of::<Segment>()
                + segment.len() * (1 + FEATURES * size_of::<f32>() + size_of::<SequenceLengths>())
                + segment.edges.len() * size_of::<[u16; 2]>()
                + segment.configurable.len() * size_of::<u16>()
        };
        let occurrence = |occurrence: &Occurrence| {
            size_of::<Occurrence>()
                + occurrence.slots.len() * size_of::<usize>()
                + occurrence.nodes.len() * size_of::<u32>()
        };
        size_of::<Self>()
            + self.configurable.len() * size_of::<u32>()
            + self.segments.iter().map(segment).sum::<usize>()
            + self.occurrences.iter().map(occurrence).sum::<usize>()
    }
}

/// Connected pieces of the pruned graph as ascending positions in `pruned.nodes`, ordered by their first node.
fn connected_pieces(pruned: &Pruned) -> Vec<Vec<u32>> {
    let mut parents: Vec<u32> = (0..).take(pruned.nodes.len()).collect();
    for &[consumer, producer] in &pruned.edges {
        let (one, other) = (find(&mut parents, consumer), find(&mut parents, producer));
        parents[one.max(other) as usize] = one.min(other);
    }
    let mut pieces: Vec<Vec<u32>> = Vec::new();
    let mut piece_of_root = HashMap::new();
    for position in (0..).take(pruned.nodes.len()) {
        let root = find(&mut parents, position);
        let piece = *piece_of_root.entry(root).or_insert_with(|| {
            pieces.push(Vec::new());
            pieces.len() - 1
        });
        pieces[piece].push(position);
    }
    pieces
}

/// The root of a set; halves the path on the way.
fn find(parents: &mut [u32], mut position: u32) -> u32 {
    while parents[position as usize] != position {
        let grandparent = parents[parents[position as usize] as usize];
        parents[position as usize] = grandparent;
        position = grandparent;
    }
    position
}

/// Turns pieces into segments, equal ones into one.
struct Cutter<'a> {
    graph: &'a Graph,
    pruned: &'a Pruned,
    slot_of_node: HashMap<u32, usize>,
    /// For each position in the pruned graph, its position in its piece; `u16::MAX` outside the current one.
    local: Vec<u16>,
    segments: Vec<Segment>,
    segment_of_digest: HashMap<Digest, usize>,
}

const OUTSIDE: u16 = u16::MAX;

impl<'a> Cutter<'a> {
    fn new(graph: &'a Graph, pruned: &'a Pruned) -> Self {
        Self {
            graph,
            pruned,
            slot_of_node: graph.configurable().iter().copied().zip(0..).collect(),
            local: vec![OUTSIDE; pruned.nodes.len()],
            segments: Vec::new(),
            segment_of_digest: HashMap::new(),
        }
    }

    fn occurrence(&mut self, piece: &[u32]) -> Occurrence {
        let nodes: Vec<u32> = piece.iter().map(|&position| self.pruned.nodes[position as usize]).collect();
        let (configurable, slots) = self.configurable(&nodes);
        let edges = self.edges(piece);
        let segment = self.segment(&nodes, edges, configurable);
        Occurrence { segment: self.intern(segment), slots, nodes }
    }

    fn configurable(&self, nodes: &[u32]) -> (Vec<u16>, Vec<usize>) {
        let slots = (0..).zip(nodes).filter_map(|(local, node)| Some((local, *self.slot_of_node.get(node)?)));
        slots.unzip()
    }

    /// Edges of a piece as local positions. Edges are sorted by consumer, so each node's are found by search.
    fn edges(&mut self, piece: &[u32]) -> Vec<[u16; 2]> {
        (0..).zip(piece).for_each(|(local, &position)| self.local[position as usize] = local);
        let all = &self.pruned.edges;
        let mut edges = Vec::new();
        for &position in piece {
            let first = all.partition_point(|[consumer, _]| *consumer < position);
            let own = all[first..].iter().take_while(|[consumer, _]| *consumer == position);
            let local = own.map(|edge| edge.map(|end| self.local[end as usize]));
            edges.extend(local.filter(|edge| !edge.contains(&OUTSIDE)));
        }
        for &position in piece {
            self.local[position as usize] = OUTSIDE;
        }
        edges
    }

    fn segment(&self, nodes: &[u32], edges: Vec<[u16; 2]>, configurable: Vec<u16>) -> Segment {
        let lengths = self.graph.sequence_lengths();
        let mut segment = Segment {
            digest: Digest([0; 32]),
            opcodes: nodes.iter().map(|&node| self.graph.opcodes()[node as usize]).collect(),
            features: nodes.iter().flat_map(|&node| self.graph.raw_row(node as usize)).copied().collect(),
            sequence_lengths: lengths.map(|all| nodes.iter().map(|&node| all[node as usize]).collect()),
            edges,
            configurable,
        };
        segment.digest = hash::segment_digest(&segment);
        segment
    }

    fn intern(&mut self, segment: Segment) -> usize {
        *self.segment_of_digest.entry(segment.digest).or_insert_with(|| {
            self.segments.push(segment);
            self.segments.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GraphArrays, Limits};

    fn graph(task: Task, opcodes: &[u8], edges: &[[u32; 2]], configurable: &[u32]) -> Graph {
        let features = vec![0.0; opcodes.len() * FEATURES];
        let limits = Limits { edges: usize::MAX, ..Limits::default() };
        let arrays =
            GraphArrays::from_features(opcodes.to_vec(), features, edges.to_vec(), Pad::Zero, &limits);
        Graph::new(task, arrays.unwrap(), configurable.to_vec()).unwrap()
    }

    #[test]
    fn equal_pieces_share_a_segment() {
        let edges = [[1, 0], [3, 2], [5, 4]];
        let cut = SegmentedGraph::new(&graph(Task::Layout, &[1, 26, 1, 26, 2, 26], &edges, &[1, 3, 5]));
        let segments: Vec<usize> = cut.occurrences.iter().map(|occurrence| occurrence.segment).collect();
        assert_eq!(segments, [0, 0, 1]);
        assert_eq!(cut.occurrences[1].slots, [1]);
        assert_eq!(cut.segments[0].edges, [[1, 0]]);
        assert_eq!(cut.segments[0].configurable, [1]);
    }

    #[test]
    fn a_configurable_node_and_a_fixed_one_are_different_segments() {
        let chain = |configurable: &[u32]| {
            let cut = SegmentedGraph::new(&graph(Task::Layout, &[26, 26], &[[1, 0]], configurable));
            cut.segments[0].digest
        };
        assert_ne!(chain(&[0, 1]), chain(&[1]));
    }

    #[test]
    fn a_kernel_is_one_segment_even_in_two_pieces() {
        let cut = SegmentedGraph::new(&graph(Task::Tile, &[1, 2, 3], &[[1, 0]], &[]));
        assert_eq!(cut.summary.segments, 1);
        assert_eq!(cut.summary.largest_segment, 3);
    }

    #[test]
    fn a_large_piece_is_cut_into_runs() {
        let nodes = u32::try_from(2 * MAX_SEGMENT_NODES + 3).unwrap();
        let edges: Vec<[u32; 2]> = (1..nodes).map(|node| [node, node - 1]).collect();
        let configurable: Vec<u32> = (0..nodes).collect();
        let cut = SegmentedGraph::new(&graph(Task::Layout, &vec![26; nodes as usize], &edges, &configurable));
        let sizes: Vec<usize> = cut.occurrences.iter().map(|occurrence| occurrence.nodes.len()).collect();
        assert_eq!(sizes, [MAX_SEGMENT_NODES, MAX_SEGMENT_NODES, 3]);
        assert_eq!(cut.summary.distinct_segments, 2);
    }
}
