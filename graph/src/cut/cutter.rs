use std::collections::HashMap;

use super::prune::Pruned;
use crate::{Digest, Graph, Segment, arrays::producers};

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

/// Turns pieces into segments; equal pieces become one segment.
pub(super) struct Cutter<'a> {
    graph: &'a Graph,
    pruned: &'a Pruned,
    slot_of_node: HashMap<u32, usize>,
    /// For each position in the pruned graph, its position in its piece; `u16::MAX` outside the current one.
    local: Vec<u16>,
    pub(super) segments: Vec<Segment>,
    segment_of_digest: HashMap<Digest, usize>,
}

const OUTSIDE: u16 = u16::MAX;

impl<'a> Cutter<'a> {
    pub(super) fn new(graph: &'a Graph, pruned: &'a Pruned) -> Self {
        Self {
            graph,
            pruned,
            slot_of_node: graph.configurable().iter().copied().zip(0..).collect(),
            local: vec![OUTSIDE; pruned.nodes.len()],
            segments: Vec::new(),
            segment_of_digest: HashMap::new(),
        }
    }

    pub(super) fn occurrence(&mut self, piece: &[u32]) -> Occurrence {
        let nodes: Vec<u32> = piece
            .iter()
            .map(|&position| self.pruned.nodes[position as usize])
            .collect();
        let slots = (0..)
            .zip(&nodes)
            .filter_map(|(local, node)| Some((local, *self.slot_of_node.get(node)?)));
        let (configurable, slots) = slots.unzip();
        let edges = self.edges(piece);
        let segment = self.segment(&nodes, edges, configurable);
        let number = self.segment_of_digest.entry(segment.digest);
        let segment = *number.or_insert_with(|| {
            self.segments.push(segment);
            self.segments.len() - 1
        });
        Occurrence {
            segment,
            slots,
            nodes,
        }
    }

    /// Edges of a piece as local positions, sorted.
    fn edges(&mut self, piece: &[u32]) -> Vec<[u16; 2]> {
        (0..)
            .zip(piece)
            .for_each(|(local, &position)| self.local[position as usize] = local);
        let mut edges = Vec::new();
        for &position in piece {
            let consumer = self.local[position as usize];
            let own = producers(&self.pruned.edges, position);
            let local = own.map(|producer| [consumer, self.local[producer as usize]]);
            // A large connected piece is cut into runs, and edges between two runs are dropped.
            edges.extend(local.filter(|[_, producer]| *producer != OUTSIDE));
        }
        // Clearing the piece alone keeps the work for all pieces linear in the graph.
        for &position in piece {
            self.local[position as usize] = OUTSIDE;
        }
        edges
    }

    fn segment(&self, nodes: &[u32], edges: Vec<[u16; 2]>, configurable: Vec<u16>) -> Segment {
        let lengths = self.graph.sequence_lengths();
        let mut segment = Segment {
            digest: Digest([0; 32]),
            opcodes: nodes
                .iter()
                .map(|&node| self.graph.opcodes()[node as usize])
                .collect(),
            features: nodes
                .iter()
                .flat_map(|&node| self.graph.raw_row(node as usize))
                .copied()
                .collect(),
            sequence_lengths: lengths
                .map(|all| nodes.iter().map(|&node| all[node as usize]).collect()),
            edges,
            configurable,
        };
        segment.digest = segment.compute_digest();
        segment
    }
}

/// Connected pieces of the pruned graph as ascending positions in `pruned.nodes`, ordered by their first node.
pub(super) fn connected_pieces(pruned: &Pruned) -> Vec<Vec<u32>> {
    let mut parents: Vec<u32> = (0..).take(pruned.nodes.len()).collect();
    for &[consumer, producer] in &pruned.edges {
        join(&mut parents, consumer, producer);
    }
    // Positions are visited in ascending order, so pieces are ordered by their first node, and
    // their nodes ascend.
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

/// Makes two sets one (union-find). A parent is never larger than its child, so the root is the
/// first node of its set.
fn join(parents: &mut [u32], one: u32, other: u32) {
    let one = find(parents, one);
    let other = find(parents, other);
    parents[one.max(other) as usize] = one.min(other);
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
