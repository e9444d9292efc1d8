use std::{collections::HashMap, sync::Arc};

use super::prune::{PrunedGraph, prune};
use crate::{
    Digest, FEATURES, FusionProgram, Graph, KernelTooLarge, LoopNest, Pad, Scope, Segment,
    SequenceLengths, Task,
    arrays::producers,
    fusion::{KernelMemory, KnownKernel, KnownKernels},
    pace,
    program::row_bytes,
};

/// Maximum number of nodes of a segment, unless a tile model takes larger ones. A larger connected piece is cut into runs of this many nodes in ascending
/// order, and edges between runs are dropped. Training and serving cut in the same way.
pub const MAX_SEGMENT_NODES: usize = 512;

/// A graph and the segments that it is cut into: all that a model needs to know of it.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentedGraph {
    /// The graph hash.
    pub hash: Digest,
    /// The graph before pruning, which whole-graph models take.
    pub whole: Graph,
    /// What is tuned.
    pub task: Task,
    /// Configurable nodes in slot order; empty for a kernel.
    pub configurable: Vec<u32>,
    /// Segments that differ from each other; none for a program before fusion, whose configurations decide them,
    /// and for a graph of a feature set, which is not cut.
    pub segments: Vec<Segment>,
    /// Places where segments occur, by first node.
    pub occurrences: Vec<Occurrence>,
    /// The loops of a kernel.
    pub loops: Option<LoopNest>,
    /// Sizes.
    pub summary: Summary,
    kernels: Arc<KnownKernels>,
}

/// Sizes of a graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Summary {
    /// Nodes.
    pub nodes: usize,
    /// Edges.
    pub edges: usize,
    /// Configurable nodes.
    pub configurable: usize,
    /// Nodes that pruning keeps.
    pub kept: usize,
    /// Connected pieces of the pruned graph; for a program before fusion, its kernels if nothing is fused.
    pub segments: usize,
    /// Pieces that differ from each other.
    pub distinct_segments: usize,
    /// Nodes of the largest piece.
    pub largest_segment: usize,
}

impl SegmentedGraph {
    /// Prunes a graph and cuts it into segments of at most [`MAX_SEGMENT_NODES`] nodes.
    pub fn new(graph: &Graph) -> Self {
        Self::cut(graph, MAX_SEGMENT_NODES)
    }

    /// Prunes a graph and cuts it into segments of at most `max_segment_nodes` nodes, at least 1.
    pub fn cut(graph: &Graph, max_segment_nodes: usize) -> Self {
        let pruned = prune(graph);
        let uncut = Self::uncut(graph, &pruned);
        let pieces = match graph.task().kind().scope {
            Scope::Program => return uncut.summarize_unfused(),
            Scope::EveryNode => return uncut,
            Scope::Nodes => connected_pieces(&pruned),
            // A kernel is one piece, connected or not.
            Scope::Kernel => vec![(0..).take(pruned.nodes.len()).collect()],
        };
        // The loops of a kernel follow from all of it, and from how its instructions read their operands.
        let is_apart = pruned.nodes.len() > max_segment_nodes || graph.operands().is_some();
        let kernel = uncut.loops.as_ref().filter(|_| is_apart);
        let mut cutter = Cutter::new(graph, &pruned, kernel.map(|_| uncut.hash));
        let runs = pieces
            .iter()
            .flat_map(|piece| piece.chunks(max_segment_nodes));
        let occurrences = pace::in_steps(1, runs).map(|run| cutter.occurrence(run));
        let occurrences: Vec<Occurrence> = occurrences.collect();
        let segments = cutter.segments;
        let largest_segment = segments.iter().map(Segment::len).max();
        Self {
            summary: Summary {
                segments: occurrences.len(),
                distinct_segments: segments.len(),
                largest_segment: largest_segment.unwrap_or(0),
                ..uncut.summary
            },
            segments,
            occurrences,
            ..uncut
        }
    }

    /// Fills in the sizes of a program. Its kernels follow from configurations, so those without a
    /// fusion stand for all.
    fn summarize_unfused(mut self) -> Self {
        let unfused = vec![0; row_bytes(self.slots())];
        // A kernel of one node that calls large computations may be too large by itself.
        let kernels = self.kernels(&unfused).unwrap_or_default();
        let mut digests: Vec<_> = kernels.iter().map(|kernel| kernel.digest()).collect();
        digests.sort_unstable();
        digests.dedup();
        let largest = kernels.iter().map(|kernel| kernel.len()).max();
        self.summary = Summary {
            segments: kernels.len(),
            distinct_segments: digests.len(),
            largest_segment: largest.unwrap_or(0),
            ..self.summary
        };
        self
    }

    /// A graph without segments: what all graphs have, and all that a program or a graph of a
    /// feature set has, which models take as a whole.
    fn uncut(graph: &Graph, pruned: &PrunedGraph) -> Self {
        Self {
            hash: graph.hash(),
            whole: graph.clone(),
            task: graph.task(),
            configurable: graph.configurable().to_vec(),
            segments: Vec::new(),
            occurrences: Vec::new(),
            loops: graph.loops(),
            summary: Summary {
                nodes: graph.len(),
                edges: graph.edges().len(),
                configurable: graph.configurable().len(),
                kept: pruned.nodes.len(),
                ..Summary::default()
            },
            kernels: Arc::default(),
        }
    }

    /// Returns the kernels that a configuration of a program before fusion runs, by root; none for other graphs.
    pub(crate) fn kernels(&self, fused: &[u8]) -> Result<Vec<Arc<KnownKernel>>, KernelTooLarge> {
        let Some(program) = self.whole.program() else {
            return Ok(Vec::new());
        };
        self.kernels.of(program, &self.whole, fused)
    }

    /// Counts the kernels that are formed of a program before fusion, and kept for later configurations, in a memory that
    /// programs share.
    pub fn count_kernels_in(&self, memory: &Arc<KernelMemory>) {
        self.kernels.count_in(memory);
    }

    /// Number of kernels that are known, equal ones of a configuration once.
    #[cfg(test)]
    pub(crate) fn known_kernels(&self) -> usize {
        self.kernels.len()
    }

    /// Number of rows of a configuration; of a program before fusion the maximum.
    pub fn rows_per_config(&self) -> usize {
        self.whole
            .program()
            .map_or(self.occurrences.len(), FusionProgram::max_kernels)
    }

    /// Whether the features can be padded with a model's pad value. 0 is always possible, -1 only if the lengths of
    /// sequences are known.
    pub fn can_pad(&self, pad: Pad) -> bool {
        pad == Pad::Zero || self.whole.sequence_lengths().is_some()
    }

    /// Number of configurable nodes.
    pub fn slots(&self) -> usize {
        self.configurable.len()
    }

    /// Number of bytes that this holds, for a cache that is bounded in bytes, without those of [`Self::count_kernels_in`].
    pub fn bytes(&self) -> usize {
        let node = 1 + FEATURES * size_of::<f32>() + size_of::<SequenceLengths>();
        let segment = |segment: &Segment| {
            size_of::<Segment>()
                + segment.len() * node
                + size_of_val(&*segment.edges)
                + size_of_val(&*segment.configurable)
        };
        let occurrence = |occurrence: &Occurrence| {
            size_of::<Occurrence>()
                + size_of_val(&*occurrence.slots)
                + size_of_val(&*occurrence.nodes)
        };
        size_of::<Self>()
            + self.whole.bytes()
            + size_of_val(&*self.configurable)
            + self.loops.as_ref().map_or(0, LoopNest::bytes)
            + self.segments.iter().map(segment).sum::<usize>()
            + self.occurrences.iter().map(occurrence).sum::<usize>()
    }
}

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
struct Cutter<'a> {
    graph: &'a Graph,
    pruned: &'a PrunedGraph,
    /// The hash of a kernel whose loops do not follow from a segment.
    kernel: Option<Digest>,
    slot_of_node: HashMap<u32, usize>,
    /// For each position in the pruned graph, its position in its piece; `u16::MAX` outside the current one.
    local: Vec<u16>,
    segments: Vec<Segment>,
    segment_of_digest: HashMap<Digest, usize>,
}

const OUTSIDE: u16 = u16::MAX;

impl<'a> Cutter<'a> {
    pub(super) fn new(graph: &'a Graph, pruned: &'a PrunedGraph, kernel: Option<Digest>) -> Self {
        Self {
            graph,
            pruned,
            kernel,
            slot_of_node: graph.configurable().iter().copied().zip(0..).collect(),
            local: vec![OUTSIDE; pruned.nodes.len()],
            segments: Vec::new(),
            segment_of_digest: HashMap::new(),
        }
    }

    fn occurrence(&mut self, piece: &[u32]) -> Occurrence {
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
        segment.digest = segment.compute_digest(self.kernel);
        segment
    }
}

/// Connected pieces of the pruned graph as ascending positions in `pruned.nodes`, ordered by their first node.
fn connected_pieces(pruned: &PrunedGraph) -> Vec<Vec<u32>> {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(task: Task, opcodes: &[u8], edges: &[[u32; 2]], configurable: &[u32]) -> Graph {
        Graph::of_zeros(task, opcodes, edges, configurable).unwrap()
    }

    /// Opcodes and edges of a chain of more nodes than two segments have.
    fn chain() -> (Vec<u8>, Vec<[u32; 2]>) {
        let opcodes = vec![26; 2 * MAX_SEGMENT_NODES + 3];
        let edges = (1..).take(opcodes.len() - 1);
        (opcodes, edges.map(|node| [node, node - 1]).collect())
    }

    #[test]
    fn equal_pieces_share_a_segment() {
        let (opcodes, edges) = ([1, 26, 1, 26, 2, 26], [[1, 0], [3, 2], [5, 4]]);
        let cut = SegmentedGraph::new(&graph(Task::Layout, &opcodes, &edges, &[1, 3, 5]));
        let occurrences = cut.occurrences.iter();
        let segments: Vec<usize> = occurrences.map(|occurrence| occurrence.segment).collect();
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
        assert_eq!((cut.summary.segments, cut.summary.largest_segment), (1, 3));
        // Without lengths of lists, features are padded with zeros alone.
        let pads = [Pad::Zero, Pad::MinusOne];
        assert_eq!(pads.map(|pad| cut.can_pad(pad)), [true, false]);
    }

    #[test]
    fn nodes_that_pruning_drops_are_kept_whole_and_weighed() {
        let graph = graph(Task::Layout, &[1, 2, 26, 3, 4], &[[2, 1], [4, 3]], &[2]);
        let cut = SegmentedGraph::new(&graph);
        assert_eq!((cut.summary.kept, &cut.whole), (2, &graph));
        assert!(cut.bytes() >= (graph.len() + cut.summary.kept) * FEATURES * size_of::<f32>());
    }

    #[test]
    fn a_large_piece_is_cut_into_runs() {
        let (opcodes, edges) = chain();
        let configurable: Vec<u32> = (0..).take(opcodes.len()).collect();
        let cut = SegmentedGraph::new(&graph(Task::Layout, &opcodes, &edges, &configurable));
        let occurrences = cut.occurrences.iter();
        let sizes: Vec<usize> = occurrences
            .map(|occurrence| occurrence.nodes.len())
            .collect();
        assert_eq!(sizes, [MAX_SEGMENT_NODES, MAX_SEGMENT_NODES, 3]);
        assert_eq!(cut.summary.distinct_segments, 2);
    }

    #[test]
    fn a_kernel_may_be_cut_into_larger_segments() {
        let (opcodes, edges) = chain();
        let kernel = graph(Task::Tile, &opcodes, &edges, &[]);
        for (max, expected) in [
            (4 * MAX_SEGMENT_NODES, vec![(1027, 1026)]),
            (2 * MAX_SEGMENT_NODES, vec![(1024, 1023), (3, 2)]),
        ] {
            let cut = SegmentedGraph::cut(&kernel, max);
            let segments = cut.segments.iter();
            let sizes = segments.map(|segment| (segment.len(), segment.edges.len()));
            assert_eq!(sizes.collect::<Vec<_>>(), expected);
        }
    }
}
