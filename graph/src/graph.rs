use std::fmt;

use crate::{Digest, FEATURES, GraphError, Limits, Pad, SequenceLengths, hash, opcode};

/// What is tuned, and so which configurations apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// One kernel; a configuration is its tile.
    Tile,
    /// A whole module; a configuration sets the layouts of its configurable nodes.
    Layout,
}

impl fmt::Display for Task {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Tile => "tile",
            Self::Layout => "layout",
        })
    }
}

/// One HLO module as nodes (instructions), edges, opcodes and features. Checked: every edge joins nodes that are
/// there, and edges form no cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    task: Task,
    arrays: GraphArrays,
    configurable: Vec<u32>,
}

/// The arrays of a graph of `n` nodes and `m` edges.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphArrays {
    /// `[n]` opcode ids.
    pub opcodes: Vec<u8>,
    /// `[n, 140]` row-major features, sequences padded with 0.
    pub features: Vec<f32>,
    /// `[n]` lengths of the sequences; `None` where the features came padded with 0 and the lengths are lost.
    pub sequence_lengths: Option<Vec<SequenceLengths>>,
    /// `[m]` pairs (consumer, producer), sorted, each once.
    pub edges: Vec<[u32; 2]>,
}

impl GraphArrays {
    /// Takes features as `TpuGraphs`' files and the wire hold them: `features` padded with `pad`, edges in any
    /// order.
    pub fn from_features(
        opcodes: Vec<u8>,
        mut features: Vec<f32>,
        mut edges: Vec<[u32; 2]>,
        pad: Pad,
        limits: &Limits,
    ) -> Result<Self, GraphError> {
        check_sizes(opcodes.len(), edges.len(), limits)?;
        check_features(opcodes.len(), &features)?;
        let sequence_lengths = (pad == Pad::MinusOne).then(|| unpad(&mut features));
        // −0 and 0 are the same number, so they must hash alike.
        for feature in &mut features {
            *feature += 0.0;
        }
        edges.sort_unstable();
        edges.dedup();
        Ok(Self { opcodes, features, sequence_lengths, edges })
    }

    /// Nodes whose opcode the table does not have.
    #[must_use]
    pub fn unknown_opcodes(&self) -> usize {
        self.opcodes.iter().map(|&opcode| usize::from(opcode == 0)).sum()
    }

    /// Nodes whose opcode is convolution, dot or reshape, ascending.
    #[must_use]
    pub fn default_configurable(&self) -> Vec<u32> {
        let configurable = |opcode: &u8| [opcode::CONVOLUTION, opcode::DOT, opcode::RESHAPE].contains(opcode);
        (0..).zip(&self.opcodes).filter(|(_, opcode)| configurable(opcode)).map(|(node, _)| node).collect()
    }
}

fn check_sizes(nodes: usize, edges: usize, limits: &Limits) -> Result<(), GraphError> {
    if nodes == 0 {
        return Err(GraphError::Empty);
    }
    if nodes > limits.nodes {
        return Err(GraphError::too_many_nodes(limits));
    }
    if edges > limits.edges {
        return Err(GraphError::too_many_edges(limits));
    }
    Ok(())
}

impl GraphError {
    pub(crate) fn too_many_nodes(limits: &Limits) -> Self {
        Self::too_many("nodes", limits)
    }

    /// More of `what` than there may be nodes.
    pub(crate) fn too_many(what: &'static str, limits: &Limits) -> Self {
        Self::TooMany { what, limit: limits.nodes, setting: "--max-nodes" }
    }

    pub(crate) fn too_many_edges(limits: &Limits) -> Self {
        Self::TooMany { what: "edges", limit: limits.edges, setting: "--max-edges" }
    }
}

fn check_features(nodes: usize, features: &[f32]) -> Result<(), GraphError> {
    if features.len() != nodes * FEATURES {
        return Err(GraphError::ArrayLength {
            array: "node_feat",
            found: features.len(),
            expected: nodes * FEATURES,
        });
    }
    match features.iter().position(|feature| !feature.is_finite()) {
        Some(at) => Err(GraphError::FeatureNotFinite { node: at / FEATURES, column: at % FEATURES }),
        None => Ok(()),
    }
}

fn unpad(features: &mut [f32]) -> Vec<SequenceLengths> {
    let unpad_row = |row: &mut [f32]| {
        let lengths = SequenceLengths::of_row(row);
        lengths.pad_row(row, Pad::Zero);
        lengths
    };
    features.chunks_exact_mut(FEATURES).map(unpad_row).collect()
}

impl Graph {
    /// Checks the arrays and the configurable nodes (in slot order; none for a kernel).
    pub fn new(task: Task, arrays: GraphArrays, configurable: Vec<u32>) -> Result<Self, GraphError> {
        check_edges(arrays.opcodes.len(), &arrays.edges)?;
        check_configurable(task, arrays.opcodes.len(), &configurable)?;
        Ok(Self { task, arrays, configurable })
    }

    /// What is tuned.
    #[must_use]
    pub fn task(&self) -> Task {
        self.task
    }

    /// Number of nodes; at least 1.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a graph has at least one node")]
    pub fn len(&self) -> usize {
        self.arrays.opcodes.len()
    }

    /// `[n]` opcode ids.
    #[must_use]
    pub fn opcodes(&self) -> &[u8] {
        &self.arrays.opcodes
    }

    /// Nodes whose opcode the table does not have.
    #[must_use]
    pub fn unknown_opcodes(&self) -> usize {
        self.arrays.unknown_opcodes()
    }

    /// `[m]` pairs (consumer, producer), sorted, each once.
    #[must_use]
    pub fn edges(&self) -> &[[u32; 2]] {
        &self.arrays.edges
    }

    /// Configurable nodes in slot order; empty for a kernel.
    #[must_use]
    pub fn configurable(&self) -> &[u32] {
        &self.configurable
    }

    /// The 140 features of a node, sequences padded with 0.
    #[must_use]
    pub fn raw_row(&self, node: usize) -> &[f32] {
        &self.arrays.features[node * FEATURES..][..FEATURES]
    }

    /// `[n, 140]` features, sequences padded with 0.
    #[must_use]
    pub fn raw_features(&self) -> &[f32] {
        &self.arrays.features
    }

    /// `[n]` lengths of the sequences, where known.
    #[must_use]
    pub fn sequence_lengths(&self) -> Option<&[SequenceLengths]> {
        self.arrays.sequence_lengths.as_deref()
    }

    /// `[n, 140]` features padded as asked; `None` for [`Pad::MinusOne`] where lengths are not known.
    #[must_use]
    pub fn features(&self, pad: Pad) -> Option<Vec<f32>> {
        let mut features = self.arrays.features.clone();
        if pad != Pad::Zero {
            for (row, lengths) in features.chunks_exact_mut(FEATURES).zip(self.sequence_lengths()?) {
                lengths.pad_row(row, pad);
            }
        }
        Some(features)
    }

    /// The graph hash: BLAKE3-256 of the canonical form in `graph/README.md`.
    #[must_use]
    pub fn hash(&self) -> Digest {
        hash::graph_hash(self)
    }
}

fn check_edges(nodes: usize, edges: &[[u32; 2]]) -> Result<(), GraphError> {
    for (edge, pair) in edges.iter().enumerate() {
        if let Some(&node) = pair.iter().find(|&&node| node as usize >= nodes) {
            return Err(GraphError::UnknownEdgeNode { edge, node, nodes });
        }
    }
    // XLA emits producers before consumers, which rules cycles out without a search.
    if edges.iter().all(|[consumer, producer]| consumer > producer) {
        return Ok(());
    }
    find_cycle(nodes, edges).map_or(Ok(()), |node| Err(GraphError::Cycle { node }))
}

/// Removes nodes without consumers until none is left (Kahn); what stays lies on a cycle or is consumed by one.
fn find_cycle(nodes: usize, edges: &[[u32; 2]]) -> Option<u32> {
    let mut consumers = vec![0_u32; nodes];
    for [_, producer] in edges {
        consumers[*producer as usize] += 1;
    }
    let first_edge = |node: u32| edges.partition_point(|[consumer, _]| *consumer < node);
    let mut ready: Vec<u32> =
        (0..).zip(&consumers).filter(|(_, count)| **count == 0).map(|(node, _)| node).collect();
    while let Some(node) = ready.pop() {
        for [_, producer] in edges[first_edge(node)..].iter().take_while(|[consumer, _]| *consumer == node) {
            consumers[*producer as usize] -= 1;
            if consumers[*producer as usize] == 0 {
                ready.push(*producer);
            }
        }
    }
    let (left, _) = (0..).zip(&consumers).find(|(_, count)| **count > 0)?;
    Some(node_on_cycle(left, edges, &consumers))
}

/// Every node with consumers left has one that is left too, so following them from `left` ends on a cycle.
fn node_on_cycle(left: u32, edges: &[[u32; 2]], consumers: &[u32]) -> u32 {
    let mut consumer_of = vec![left; consumers.len()];
    for [consumer, producer] in edges.iter().filter(|[consumer, _]| consumers[*consumer as usize] > 0) {
        consumer_of[*producer as usize] = *consumer;
    }
    consumers.iter().fold(left, |node, _| consumer_of[node as usize])
}

fn check_configurable(task: Task, nodes: usize, configurable: &[u32]) -> Result<(), GraphError> {
    if task == Task::Tile && !configurable.is_empty() {
        return Err(GraphError::ConfigurableKernel { count: configurable.len() });
    }
    let mut seen = vec![false; nodes];
    for &node in configurable {
        let slot = seen.get_mut(node as usize);
        match slot {
            None => return Err(GraphError::UnknownConfigurableNode { node: node.into(), nodes }),
            Some(true) => return Err(GraphError::DuplicateConfigurableNode { node }),
            Some(seen) => *seen = true,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrays(nodes: usize, edges: &[[u32; 2]]) -> GraphArrays {
        let features = vec![0.0; nodes * FEATURES];
        GraphArrays::from_features(vec![0; nodes], features, edges.to_vec(), Pad::Zero, &Limits::default())
            .unwrap()
    }

    fn layout(nodes: usize, edges: &[[u32; 2]], configurable: &[u32]) -> Result<Graph, GraphError> {
        Graph::new(Task::Layout, arrays(nodes, edges), configurable.to_vec())
    }

    #[test]
    fn edges_against_the_order_are_fine_without_a_cycle() {
        assert!(layout(4, &[[0, 1], [1, 3], [2, 0], [2, 3]], &[]).is_ok());
    }

    #[test]
    fn a_cycle_is_found() {
        assert_eq!(layout(4, &[[3, 2], [2, 1], [1, 2]], &[]), Err(GraphError::Cycle { node: 1 }));
        assert_eq!(layout(1, &[[0, 0]], &[]), Err(GraphError::Cycle { node: 0 }));
        let behind = layout(4, &[[1, 0], [1, 2], [2, 0], [2, 1]], &[]);
        assert!(matches!(behind, Err(GraphError::Cycle { node: 1 | 2 })), "{behind:?}");
    }

    #[test]
    fn an_edge_must_stay_inside() {
        let error = GraphError::UnknownEdgeNode { edge: 1, node: 2, nodes: 2 };
        assert_eq!(layout(2, &[[1, 0], [2, 0]], &[]), Err(error));
    }

    #[test]
    fn configurable_nodes_are_there_and_once() {
        assert_eq!(layout(2, &[], &[2]), Err(GraphError::UnknownConfigurableNode { node: 2, nodes: 2 }));
        assert_eq!(layout(2, &[], &[1, 1]), Err(GraphError::DuplicateConfigurableNode { node: 1 }));
        let kernel = Graph::new(Task::Tile, arrays(2, &[]), vec![0]);
        assert_eq!(kernel, Err(GraphError::ConfigurableKernel { count: 1 }));
    }

    #[test]
    fn negative_zero_hashes_like_zero() {
        let with_zero = |zero: f32| {
            let limits = Limits::default();
            let arrays =
                GraphArrays::from_features(vec![1], vec![zero; FEATURES], vec![], Pad::Zero, &limits);
            Graph::new(Task::Tile, arrays.unwrap(), vec![]).unwrap().hash()
        };
        assert_eq!(with_zero(0.0), with_zero(-0.0));
    }

    #[test]
    fn features_must_be_finite() {
        let mut features = vec![0.0; 2 * FEATURES];
        features[FEATURES + 3] = f32::NAN;
        let refused = GraphArrays::from_features(vec![0; 2], features, vec![], Pad::Zero, &Limits::default());
        assert_eq!(refused, Err(GraphError::FeatureNotFinite { node: 1, column: 3 }));
    }
}
