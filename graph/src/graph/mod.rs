//! Graphs: checked arrays, and what is tuned.

mod arrays;
mod edges;

use std::{fmt, sync::Arc};

use hlorank_proto::v1;

pub use self::arrays::GraphArrays;
use self::edges::{check_acyclic, check_ends};
use crate::{Digest, FEATURES, FeatureSet, GraphError, Pad, SequenceLengths, hash::CanonicalForm};

/// What is tuned, and so which configurations apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Task {
    /// One kernel; a configuration is its tile.
    Tile,
    /// A whole module; a configuration sets the layouts of its configurable nodes.
    Layout,
}

impl From<Task> for v1::Task {
    fn from(task: Task) -> Self {
        match task {
            Task::Tile => Self::Tile,
            Task::Layout => Self::Layout,
        }
    }
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
/// there, and edges form no cycle. A clone shares the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    task: Task,
    arrays: Arc<GraphArrays>,
    configurable: Vec<u32>,
}

impl Graph {
    /// Checks the arrays and the configurable nodes (in slot order; none for a kernel).
    pub fn new(task: Task, mut arrays: GraphArrays, configurable: Vec<u32>) -> Result<Self, GraphError> {
        check_ends(arrays.opcodes.len(), &arrays.edges)?;
        check_acyclic(arrays.opcodes.len(), &arrays.edges)?;
        check_configurable(task, arrays.opcodes.len(), &configurable)?;
        // They may be cached for long, and were grown node by node.
        arrays.shrink_to_fit();
        Ok(Self { task, arrays: Arc::new(arrays), configurable })
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

    /// Returns the set that the features of the nodes belong to.
    #[must_use]
    pub fn feature_set(&self) -> &'static FeatureSet {
        FeatureSet::TPUGRAPHS
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

    /// Bytes that the arrays hold, for a cache that is bounded in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let lengths = self.sequence_lengths().map_or(0, size_of_val);
        self.opcodes().len()
            + size_of_val(self.raw_features())
            + lengths
            + size_of_val(self.edges())
            + size_of_val(self.configurable())
    }

    /// The graph hash: BLAKE3-256 of the canonical form in `graph/README.md`.
    #[must_use]
    pub fn hash(&self) -> Digest {
        let mut form = CanonicalForm::new(b"hlorank-graph");
        form.bytes(&[match self.task {
            Task::Tile => 1,
            Task::Layout => 2,
        }]);
        form.count(self.len());
        form.count(self.edges().len());
        form.count(self.configurable.len());
        form.nodes(self.opcodes(), self.raw_features(), self.sequence_lengths());
        form.numbers(self.edges().as_flattened().iter().copied());
        form.numbers(self.configurable.iter().copied());
        form.digest()
    }
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
    use crate::Limits;

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
        let (edges, features) = (vec![[2, 0], [1, 0]], vec![0.0; 2 * FEATURES]);
        let arrays = GraphArrays::from_features(vec![0; 2], features, edges, Pad::Zero, &Limits::default());
        assert_eq!(arrays, Err(GraphError::UnknownEdgeNode { edge: 0, node: 2, nodes: 2 }));
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
