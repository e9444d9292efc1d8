use std::sync::Arc;

use super::feature_graph::FeatureGraph;
use crate::{
    Digest, FEATURES, FusionProgram, GraphArrays, GraphError, LoopNest, OperandLists, Pad, Scope,
    SequenceLengths, Task,
    arrays::{check_acyclic, check_ends, check_range},
    hash::CanonicalForm,
};

/// One HLO module as nodes (instructions), edges, opcodes and features, or a graph of a named feature set. Every edge joins
/// two nodes of the graph, and edges form no cycle. A clone shares the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    task: Task,
    nodes: GraphNodes,
    configurable: Vec<u32>,
    /// What the arrays do not tell of a program before fusion.
    program: Option<Arc<FusionProgram>>,
}

/// Nodes and edges by what the nodes are.
#[derive(Clone, Debug, PartialEq)]
enum GraphNodes {
    /// Instructions of a module.
    Instructions(Arc<GraphArrays>),
    /// Nodes with the columns of a named feature set.
    Columns(Arc<FeatureGraph>),
}

impl Graph {
    /// Checks the arrays and the configurable nodes. `configurable` is in slot order, and empty for a kernel. The kernels
    /// of a program before fusion do not follow from arrays: [`HloModule::into_graph`](crate::HloModule::into_graph) makes
    /// its graph.
    pub fn new(
        task: Task,
        arrays: GraphArrays,
        configurable: Vec<u32>,
    ) -> Result<Self, GraphError> {
        match task.kind().scope {
            Scope::Program => Err(GraphError::ProgramWithoutModule),
            Scope::EveryNode => Err(GraphError::WrongSource { task }),
            Scope::Kernel | Scope::Nodes => Self::checked(task, arrays, configurable, None),
        }
    }

    /// Checks the arrays of a program before fusion.
    pub(crate) fn of_program(
        arrays: GraphArrays,
        program: FusionProgram,
    ) -> Result<Self, GraphError> {
        let slots = program.slots().to_vec();
        Self::checked(Task::Fusion, arrays, slots, Some(Arc::new(program)))
    }

    /// Makes the graph of a feature set. Its configurations set every node.
    pub fn of_features(graph: FeatureGraph) -> Self {
        let configurable = (0..).take(graph.nodes()).collect();
        Self {
            task: Task::FeatureSet,
            nodes: GraphNodes::Columns(Arc::new(graph)),
            configurable,
            program: None,
        }
    }

    fn checked(
        task: Task,
        mut arrays: GraphArrays,
        configurable: Vec<u32>,
        program: Option<Arc<FusionProgram>>,
    ) -> Result<Self, GraphError> {
        check_ends(arrays.opcodes.len(), &arrays.edges)?;
        check_acyclic(arrays.opcodes.len(), &arrays.edges)?;
        check_configurable(task, arrays.opcodes.len(), &configurable)?;
        // Tiles alone are described by the loops of their kernel.
        arrays
            .operands
            .take_if(|_| task.kind().scope != Scope::Kernel);
        // The arrays were grown node by node, and the graph may stay in a cache.
        arrays.shrink_to_fit();
        Ok(Self {
            task,
            nodes: GraphNodes::Instructions(Arc::new(arrays)),
            configurable,
            program,
        })
    }

    /// Checks that the features are values that a valid HLO module can have: numbers of 64 bits, flags, sizes of at least 0,
    /// and tensors of at most 2^63 elements; and that parameters and constants consume nothing. A model may overflow on larger ones. Features of a named set may be any.
    pub fn check_range(&self) -> Result<(), GraphError> {
        match &self.nodes {
            GraphNodes::Instructions(arrays) => check_range(arrays),
            GraphNodes::Columns(_) => Ok(()),
        }
    }

    /// Returns what is tuned.
    pub fn task(&self) -> Task {
        self.task
    }

    /// Returns the number of nodes, which is at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a graph has at least one node")]
    pub fn len(&self) -> usize {
        match &self.nodes {
            GraphNodes::Instructions(arrays) => arrays.opcodes.len(),
            GraphNodes::Columns(graph) => graph.nodes(),
        }
    }

    /// Returns the `[n]` opcode ids; empty for a graph of a named feature set.
    pub fn opcodes(&self) -> &[u8] {
        self.arrays().map_or(&[], |arrays| &arrays.opcodes)
    }

    /// Returns the number of nodes whose opcode is not in the table.
    pub fn unknown_opcodes(&self) -> usize {
        self.arrays().map_or(0, GraphArrays::unknown_opcodes)
    }

    /// Returns the `[m]` pairs (consumer, producer), sorted and without duplicates.
    pub fn edges(&self) -> &[[u32; 2]] {
        match &self.nodes {
            GraphNodes::Instructions(arrays) => &arrays.edges,
            GraphNodes::Columns(graph) => graph.edges(),
        }
    }

    /// Returns the configurable nodes in slot order. A kernel has none, and all nodes are those of a graph of a feature set.
    pub fn configurable(&self) -> &[u32] {
        &self.configurable
    }

    /// Returns the program before fusion, if fusions of the graph are chosen.
    pub fn program(&self) -> Option<&FusionProgram> {
        self.program.as_deref()
    }

    /// Returns the nodes and edges of a graph of a named feature set.
    pub fn feature_graph(&self) -> Option<&FeatureGraph> {
        match &self.nodes {
            GraphNodes::Instructions(_) => None,
            GraphNodes::Columns(graph) => Some(graph),
        }
    }

    fn arrays(&self) -> Option<&GraphArrays> {
        match &self.nodes {
            GraphNodes::Instructions(arrays) => Some(arrays),
            GraphNodes::Columns(_) => None,
        }
    }

    /// Returns the number of features of a node: 140, or the columns of its named feature set.
    pub fn columns(&self) -> usize {
        self.feature_graph().map_or(FEATURES, FeatureGraph::columns)
    }

    /// Returns the features of a node. Sequences are padded with 0.
    pub fn raw_row(&self, node: usize) -> &[f32] {
        &self.raw_features()[node * self.columns()..][..self.columns()]
    }

    /// Returns the `[n, columns]` features. Sequences are padded with 0.
    pub fn raw_features(&self) -> &[f32] {
        match &self.nodes {
            GraphNodes::Instructions(arrays) => &arrays.features,
            GraphNodes::Columns(graph) => graph.features(),
        }
    }

    /// Returns the `[n]` lengths of the sequences, if they are known.
    pub fn sequence_lengths(&self) -> Option<&[SequenceLengths]> {
        self.arrays()?.sequence_lengths.as_deref()
    }

    /// Returns how the instructions of a kernel read their operands, if it is known.
    pub fn operands(&self) -> Option<&OperandLists> {
        self.arrays()?.operands.as_ref()
    }

    /// Follows the loops of a kernel; `None` for other graphs.
    pub fn loops(&self) -> Option<LoopNest> {
        let is_kernel = self.task.kind().scope == Scope::Kernel;
        self.arrays().filter(|_| is_kernel).map(LoopNest::new)
    }

    /// Returns the `[n, columns]` features padded with `pad`; `None` for [`Pad::MinusOne`] if the lengths are not known.
    pub fn features(&self, pad: Pad) -> Option<Vec<f32>> {
        let nodes: Vec<u32> = (0..).take(self.len()).collect();
        self.features_of(&nodes, pad)
    }

    /// Returns the features of some nodes, as [`Self::features`] does of all.
    pub fn features_of(&self, nodes: &[u32], pad: Pad) -> Option<Vec<f32>> {
        let mut features: Vec<f32> = nodes
            .iter()
            .flat_map(|&node| self.raw_row(node as usize))
            .copied()
            .collect();
        if pad != Pad::Zero {
            let lengths = self.sequence_lengths()?;
            for (row, &node) in features.chunks_exact_mut(FEATURES).zip(nodes) {
                lengths[node as usize].pad_row(row, pad);
            }
        }
        Some(features)
    }

    /// Returns the bytes that the arrays and names hold, for a cache that is bounded in bytes.
    pub fn bytes(&self) -> usize {
        let lengths = self.sequence_lengths().map_or(0, size_of_val);
        self.opcodes().len()
            + size_of_val(self.raw_features())
            + lengths
            + self
                .operands()
                .map_or(0, |operands| size_of_val(operands.numbers()))
            + size_of_val(self.edges())
            + size_of_val(self.configurable())
            + self.program().map_or(0, FusionProgram::bytes)
            + self.feature_graph().map_or(0, FeatureGraph::name_bytes)
    }

    /// Returns a digest of the opcodes and edges, which graphs of other shapes may share; of an instance with features, of its set.
    pub fn structure(&self) -> Digest {
        let mut form = CanonicalForm::new(b"hlorank-structure");
        form.bytes(&[self.task.kind().number()]);
        form.count(self.len());
        form.bytes(self.opcodes());
        form.numbers(self.edges().as_flattened().iter().copied());
        if let Some(graph) = self.feature_graph() {
            graph.write_set(&mut form);
        }
        form.digest()
    }

    /// Returns the graph hash: BLAKE3-256 of the canonical form in `graph/README.md`.
    pub fn hash(&self) -> Digest {
        if let Some(graph) = self.feature_graph() {
            return graph.form().digest();
        }
        let mut form = CanonicalForm::new(b"hlorank-graph");
        // One module may be the graph of several tasks, whose configurations differ.
        form.bytes(&[self.task.kind().number()]);
        form.count(self.len());
        form.count(self.edges().len());
        form.count(self.configurable.len());
        form.nodes(self.opcodes(), self.raw_features(), self.sequence_lengths());
        form.numbers(self.edges().as_flattened().iter().copied());
        form.numbers(self.configurable.iter().copied());
        if let Some(program) = self.program() {
            program.write(&mut form);
        }
        if let Some(operands) = self.operands() {
            form.bytes(b"operands");
            form.count(operands.numbers().len());
            form.numbers(operands.numbers().iter().copied());
        }
        form.digest()
    }
}

fn check_configurable(task: Task, nodes: usize, configurable: &[u32]) -> Result<(), GraphError> {
    if task.kind().scope == Scope::Kernel && !configurable.is_empty() {
        return Err(GraphError::ConfigurableKernel {
            count: configurable.len(),
        });
    }
    let mut seen = vec![false; nodes];
    for &node in configurable {
        match seen.get_mut(node as usize) {
            None => {
                return Err(GraphError::UnknownConfigurableNode {
                    node: node.into(),
                    nodes,
                });
            }
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

    impl Graph {
        /// Returns a graph whose features are all 0.
        pub(crate) fn of_zeros(
            task: Task,
            opcodes: &[u8],
            edges: &[[u32; 2]],
            configurable: &[u32],
        ) -> Result<Self, GraphError> {
            let (opcodes, edges) = (opcodes.to_vec(), edges.to_vec());
            let features = vec![0.0; opcodes.len() * FEATURES];
            let limits = Limits::default();
            let arrays = GraphArrays::from_features(opcodes, features, edges, Pad::Zero, &limits);
            Self::new(task, arrays?, configurable.to_vec())
        }
    }

    fn layout(nodes: usize, edges: &[[u32; 2]]) -> Result<Graph, GraphError> {
        Graph::of_zeros(Task::Layout, &vec![0; nodes], edges, &[])
    }

    #[test]
    fn edges_to_later_nodes_are_accepted_and_a_cycle_is_found() {
        assert!(layout(4, &[[0, 1], [1, 3], [2, 0], [2, 3]]).is_ok());
        let cycle = |node| Err(GraphError::Cycle { node });
        assert_eq!(layout(4, &[[3, 2], [2, 1], [1, 2]]), cycle(1));
        assert_eq!(layout(1, &[[0, 0]]), cycle(0));
        let behind = layout(4, &[[1, 0], [1, 2], [2, 0], [2, 1]]);
        assert!(
            matches!(behind, Err(GraphError::Cycle { node: 1 | 2 })),
            "{behind:?}"
        );
    }

    #[test]
    fn a_kernel_has_no_configurable_nodes() {
        let kernel = Graph::of_zeros(Task::Tile, &[0; 2], &[], &[0]);
        assert_eq!(kernel, Err(GraphError::ConfigurableKernel { count: 1 }));
    }

    #[test]
    fn negative_zero_hashes_like_zero() {
        let with_zero = |zero: f32| {
            let limits = Limits::default();
            let arrays = GraphArrays::from_features(
                vec![1],
                vec![zero; FEATURES],
                vec![],
                Pad::Zero,
                &limits,
            );
            Graph::new(Task::Tile, arrays.unwrap(), vec![])
                .unwrap()
                .hash()
        };
        assert_eq!(with_zero(0.0), with_zero(-0.0));
    }
}
