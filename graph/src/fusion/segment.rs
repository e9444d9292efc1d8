use std::collections::HashMap;

use super::kernel::Kernel;
use crate::{
    Digest, FEATURES, Graph, Segment, arrays::producers, features::parameter_row, opcode_id,
};

/// Column of the flag `is_root`.
const IS_ROOT: usize = 0;

impl Kernel {
    /// Returns the kernel as a model sees it: what featurizing it as a module of its own would give. Equal kernels of any
    /// modules have the same digest. `graph` is the graph of the module.
    #[must_use]
    pub fn segment(&self, graph: &Graph) -> Segment {
        let called: Vec<u32> = self.called.iter().cloned().flatten().collect();
        let mut nodes = Nodes::new(graph, self.len());
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
        segment.digest = segment.compute_digest();
        segment
    }
}

/// A segment that grows node by node.
struct Nodes<'a> {
    graph: &'a Graph,
    segment: Segment,
}

impl<'a> Nodes<'a> {
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
