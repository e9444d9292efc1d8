use std::{collections::HashMap, ops::Range};

use crate::{
    Digest, FEATURES, Graph, Segment, arrays::producers, features::parameter_row, opcode_id,
};

/// A written node with everything that is fused into it. All numbers are nodes of the module. Its nodes as a module of
/// its own are those of `called`, a parameter for each of the `inputs`, and the `body`, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    /// The node that is written to memory.
    pub root: u32,
    /// The nodes of each computation that the body calls, directly or through others, in the order of the module.
    pub called: Vec<Range<u32>>,
    /// The nodes whose written values it reads, in the order of first use.
    pub inputs: Vec<u32>,
    /// The nodes that it computes, ascending, the root last. A constant of one element stands before its first user,
    /// because a kernel has its own copy of it.
    pub body: Vec<u32>,
}

/// What a kernel may have at most. Beyond it, a model was not trained and a compiler takes seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelLimits {
    /// Maximum number of nodes, with parameters, constants and called computations; at most 65,535.
    pub nodes: u16,
    /// Maximum number of places in the generated code at which one node is computed. Elementwise users at one index
    /// share a place of their operand, and every other user has a place of its own.
    pub places: usize,
}

/// The error of a configuration with a kernel that exceeds the limits.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
pub enum KernelTooLarge {
    /// Too many nodes.
    #[error(
        "the kernel that writes node {root} has more than {limit} nodes; fuse fewer nodes into it"
    )]
    Nodes {
        /// The node that the kernel writes.
        root: u32,
        /// The limit.
        limit: usize,
    },
    /// A node that is computed at too many places.
    #[error(
        "the kernel that writes node {root} computes node {node} at more than {limit} places; write node {node} or one \
         of its users"
    )]
    Places {
        /// The node that the kernel writes.
        root: u32,
        /// The node that it computes too often.
        node: u32,
        /// The limit.
        limit: usize,
    },
}

impl KernelTooLarge {
    /// The same fault of a kernel with another root and an equal rest.
    pub(super) fn of_root(self, root: u32) -> Self {
        match self {
            Self::Nodes { limit, .. } => Self::Nodes { root, limit },
            Self::Places { node, limit, .. } => Self::Places { root, node, limit },
        }
    }
}

impl Kernel {
    /// Returns the number of nodes of the kernel as a module of its own.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a kernel has at least its root"
    )]
    pub fn len(&self) -> usize {
        self.called
            .iter()
            .map(ExactSizeIterator::len)
            .sum::<usize>()
            + self.inputs.len()
            + self.body.len()
    }

    /// Returns the number of nodes of the program that the kernel computes, its own copies of constants included.
    pub fn computed(&self) -> usize {
        self.body.len()
    }
}

impl Default for KernelLimits {
    /// Returns as many nodes as a segment has, and as many places as XLA:CPU compiles in seconds.
    fn default() -> Self {
        Self {
            nodes: 512,
            places: 15,
        }
    }
}

/// Column of the flag `is_root`.
const IS_ROOT: usize = 0;

impl Kernel {
    /// Returns the kernel as a model sees it: what featurizing it as a module of its own would give. Equal kernels of any
    /// modules have the same digest. `graph` is the graph of the module.
    pub fn segment(&self, graph: &Graph) -> Segment {
        let called: Vec<u32> = self.called.iter().cloned().flatten().collect();
        let mut nodes = KernelNodes::new(graph, self.len());
        // The order is that of a module of its own: called computations come before the entry
        // computation, which begins with its parameters.
        for &node in &called {
            nodes.copy(node);
        }
        for (&input, number) in self.inputs.iter().zip(0..) {
            nodes.parameter(input, number);
        }
        for &node in &self.body {
            nodes.compute(node, node == self.root);
        }
        let mut segment = nodes.segment;
        segment.edges = edges(graph, self, &called);
        segment.digest = segment.compute_digest(None);
        segment
    }
}

/// A segment that grows node by node.
struct KernelNodes<'a> {
    graph: &'a Graph,
    segment: Segment,
}

impl<'a> KernelNodes<'a> {
    /// Returns a segment without nodes, which will have this many.
    fn new(graph: &'a Graph, nodes: usize) -> Self {
        let segment = Segment {
            digest: Digest([0; 32]),
            opcodes: Vec::with_capacity(nodes),
            features: Vec::with_capacity(nodes * FEATURES),
            sequence_lengths: Some(Vec::with_capacity(nodes)),
            edges: Vec::new(),
            configurable: Vec::new(),
        };
        Self { graph, segment }
    }

    /// Adds a node as it is in the module.
    fn copy(&mut self, node: u32) {
        let position = node as usize;
        self.segment.opcodes.push(self.graph.opcodes()[position]);
        self.segment
            .features
            .extend_from_slice(self.graph.raw_row(position));
        if let (Some(to), Some(from)) = (
            &mut self.segment.sequence_lengths,
            self.graph.sequence_lengths(),
        ) {
            to.push(from[position]);
        }
    }

    /// Adds a node that the kernel computes.
    fn compute(&mut self, node: u32, is_root: bool) {
        let row = self.segment.features.len();
        self.copy(node);
        // The node may be no root in its module, where the flag of each node says so.
        self.segment.features[row + IS_ROOT] = f32::from(is_root);
    }

    /// Adds the parameter that stands for an input.
    fn parameter(&mut self, input: u32, number: i64) {
        let position = input as usize;
        let lengths = self
            .graph
            .sequence_lengths()
            .map(|lengths| lengths[position])
            .unwrap_or_default();
        let (row, lengths) = parameter_row(self.graph.raw_row(position), lengths, number);
        self.segment.opcodes.push(opcode_id("parameter"));
        self.segment.features.extend(row);
        self.segment
            .sequence_lengths
            .iter_mut()
            .for_each(|all| all.push(lengths));
    }
}

/// Returns the edges between the nodes of a kernel, sorted. Parameters consume nothing.
fn edges(graph: &Graph, kernel: &Kernel, called: &[u32]) -> Vec<[u16; 2]> {
    let nodes = called.iter().chain(&kernel.inputs).chain(&kernel.body);
    // Nodes are numbered in the order in which the segment has them.
    let local: HashMap<u32, u16> = nodes.copied().zip(0..).collect();
    let mut edges = Vec::new();
    for &node in called.iter().chain(&kernel.body) {
        let own = producers(graph.edges(), node);
        edges.extend(own.filter_map(|producer| Some([local[&node], *local.get(&producer)?])));
    }
    edges.sort_unstable();
    edges
}
