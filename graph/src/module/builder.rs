use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;

use super::{
    computations::Computations,
    hlo_module::HloModule,
    nodes::{Nodes, Origin},
};
use crate::{GraphError, Limits, pace, shortened};

/// Substrings of computation names. `TpuGraphs` puts a node split after such a computation (spec §3).
const SPLIT_NAMES: [&str; 3] = ["cluster", "while", "cond"];

/// Collects the computations of a module one after the other, from protobuf or from text.
pub(crate) struct ModuleBuilder<'a, 'l> {
    limits: &'l Limits,
    nodes: Nodes<'a>,
    nodes_by_id: HashMap<i64, u32>,
    node_splits: Vec<usize>,
    unknown_opcodes: BTreeMap<String, usize>,
    computations: Computations,
}

impl<'a, 'l> ModuleBuilder<'a, 'l> {
    pub(crate) fn new(limits: &'l Limits) -> Self {
        Self {
            limits,
            nodes: Nodes::default(),
            nodes_by_id: HashMap::new(),
            node_splits: vec![0],
            unknown_opcodes: BTreeMap::new(),
            computations: Computations::default(),
        }
    }

    pub(crate) fn limits(&self) -> &'l Limits {
        self.limits
    }

    /// Returns the number of nodes so far.
    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Returns the number of closed computations.
    pub(crate) fn computations(&self) -> usize {
        self.computations.len()
    }

    /// Opens a computation, to which the nodes that follow belong.
    pub(crate) fn begin(&mut self, name: &str, id: i64, root_id: i64) -> Result<(), GraphError> {
        self.check_computations()?;
        if self.computations.begin(id, root_id, self.nodes.len()) {
            Ok(())
        } else {
            Err(GraphError::DuplicateComputation { id, name: shortened(name) })
        }
    }

    /// Checks that the limits allow one more computation.
    pub(crate) fn check_computations(&self) -> Result<(), GraphError> {
        if self.computations.len() < self.limits.nodes {
            Ok(())
        } else {
            Err(GraphError::too_many_computations(self.limits))
        }
    }

    /// Closes the computation.
    pub(crate) fn end(&mut self, name: &str) {
        if SPLIT_NAMES.iter().any(|split| name.contains(split)) {
            self.node_splits.push(self.nodes.len());
        }
        self.computations.end(self.nodes.len());
    }

    /// Makes the computation with this id the entry of the module, whether it is read already or not.
    pub(crate) fn set_entry(&mut self, id: i64) {
        self.computations.entry_id = Some(id);
    }

    /// Notes that the module lists its instructions in the order of execution.
    pub(crate) fn set_scheduled(&mut self) {
        self.computations.is_scheduled = true;
    }

    /// Adds an instruction.
    pub(crate) fn push(
        &mut self,
        instruction: &HloInstructionProto,
        is_root: bool,
        origin: Origin<'a>,
    ) -> Result<(), GraphError> {
        pace::pause();
        self.register(instruction.id, &instruction.name)?;
        let references = instruction.operand_ids.len() + instruction.called_computation_ids.len();
        if self.nodes.references.count() + references > self.limits.edges {
            return Err(GraphError::too_many_edges(self.limits));
        }
        if self.nodes.push(instruction, is_root, origin) == 0 {
            self.count_unknown(&instruction.opcode);
        }
        Ok(())
    }

    /// Adds a copy of a node that is featurized already.
    pub(crate) fn copy(&mut self, id: i64, others: &Nodes<'a>, node: usize) -> Result<(), GraphError> {
        self.register(id, "")?;
        self.nodes.copy(others, node);
        Ok(())
    }

    /// Counts an opcode that is not in the table.
    pub(crate) fn count_unknown(&mut self, opcode: &str) {
        *self.unknown_opcodes.entry(shortened(opcode)).or_default() += 1;
    }

    fn register(&mut self, id: i64, name: &str) -> Result<(), GraphError> {
        let node = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        match self.nodes_by_id.insert(id, node) {
            None => Ok(()),
            Some(first) => {
                Err(GraphError::DuplicateInstruction { id, first, second: node, name: shortened(name) })
            }
        }
    }

    pub(crate) fn finish(mut self) -> Result<HloModule<'a>, GraphError> {
        if self.nodes.len() == 0 {
            return Err(GraphError::Empty);
        }
        if self.node_splits.last() < Some(&self.nodes.len()) {
            self.node_splits.push(self.nodes.len());
        }
        let mut arrays = self.nodes.take_arrays();
        arrays.edges = self.edges()?;
        Ok(HloModule {
            arrays,
            node_splits: self.node_splits,
            unknown_opcodes: self.unknown_opcodes,
            computations: self.computations,
            nodes: self.nodes,
            nodes_by_id: self.nodes_by_id,
        })
    }

    /// Returns the edges to operands and to the roots of callees, sorted and without duplicates.
    fn edges(&self) -> Result<Vec<[u32; 2]>, GraphError> {
        let references = &self.nodes.references;
        let mut edges = Vec::with_capacity(references.count());
        for (position, node) in (0..self.nodes.len()).zip(0..) {
            let first = edges.len();
            for &id in references.operands(position) {
                edges.push([node, self.operand(node, id)?]);
            }
            for &id in references.callees(position) {
                edges.push([node, self.callee_root(node, id)?]);
            }
            edges[first..].sort_unstable();
        }
        edges.dedup();
        Ok(edges)
    }

    fn operand(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        self.nodes_by_id.get(&id).copied().ok_or(GraphError::UnknownOperand { node, id })
    }

    fn callee_root(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        let computation = self.computations.get(id);
        let root = computation.and_then(|called| self.nodes_by_id.get(&called.root_id));
        root.copied().ok_or(GraphError::UnknownCallee { node, id })
    }
}
