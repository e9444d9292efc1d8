use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;

use super::{
    builder::{Computations, ModuleBuilder, invalid_computation},
    nodes::Nodes,
};
use crate::{GraphArrays, GraphError, ModuleFault, OperandLists, pace};

/// A featurized HLO module.
#[derive(Debug)]
pub struct HloModule<'a> {
    /// Opcodes, features and edges.
    pub arrays: GraphArrays,
    /// Ends of the groups of nodes that `TpuGraphs` stores as `node_splits`, from 0 to the number of nodes.
    pub node_splits: Vec<usize>,
    /// Opcodes that are not in the table, with the number of their nodes.
    pub unknown_opcodes: BTreeMap<String, usize>,
    pub(crate) computations: Computations,
    /// Origins and references of the nodes, without the arrays that are above.
    pub(crate) nodes: Nodes<'a>,
    pub(crate) nodes_by_id: HashMap<i64, u32>,
}

/// The name, opcode and shape of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescription {
    /// Node number.
    pub node: u32,
    /// Name of the instruction.
    pub name: String,
    /// HLO opcode.
    pub opcode: String,
    /// Dimensions of the output, at most 16.
    pub dimensions: Vec<i64>,
    /// Ranks of the output and of the first two operands.
    pub tensor_ranks: Vec<u32>,
}

/// Maximum number of dimensions in a description.
const MAX_SHOWN_DIMENSIONS: usize = 16;

impl HloModule<'_> {
    /// Returns the number of nodes.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a module has at least one instruction"
    )]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Reads name, opcode and shape of a node again; `None` if there is no such node.
    pub(crate) fn head(&self, node: u32) -> Option<HloInstructionProto> {
        self.nodes.origins.get(node as usize)?.instruction()
    }

    /// Returns how the instructions of the entry computation read their operands; `None` if the module names no entry, as a list
    /// of values does not.
    pub(crate) fn operand_lists(&self) -> Option<OperandLists> {
        let entry = self.computations.entry()?;
        let root = *self.nodes_by_id.get(&entry.root_id)? as usize;
        let inside = |id: &i64| {
            let operand = *self.nodes_by_id.get(id)?;
            let is_inside = entry.nodes.contains(&(operand as usize));
            is_inside.then_some(operand)
        };
        let nodes = || pace::in_steps(pace::STEPS, entry.nodes.clone());
        let are_inside = |node: usize| {
            self.nodes
                .operands(node)
                .iter()
                .all(|id| inside(id).is_some())
        };
        if !entry.nodes.contains(&root) || !nodes().all(are_inside) {
            return None;
        }
        let instructions = nodes().map(|node| {
            let operands = self.nodes.operands(node).iter().filter_map(inside);
            let dimensions = self.nodes.dimensions.get(&node);
            (operands.collect(), dimensions.cloned().unwrap_or_default())
        });
        Some(OperandLists::new(entry.nodes.start, root, instructions))
    }

    /// Describes a node by reading its instruction again; `None` if there is no such node.
    pub fn describe(&self, node: u32) -> Option<NodeDescription> {
        // Names and dimensions are not kept for all nodes, because only a few nodes are ever
        // described.
        let instruction = self.head(node)?;
        let mut dimensions = instruction
            .shape
            .map_or_else(Vec::new, |shape| shape.dimensions);
        dimensions.truncate(MAX_SHOWN_DIMENSIONS);
        // Configurations set the layouts of the output and of two operands.
        let operands = self.nodes.operands(node as usize).iter().take(2);
        let operands = operands.filter_map(|id| self.nodes_by_id.get(id));
        let tensors = std::iter::once(&node).chain(operands);
        Some(NodeDescription {
            node,
            name: instruction.name,
            opcode: instruction.opcode,
            dimensions,
            tensor_ranks: tensors
                .map(|&tensor| self.nodes.ranks[tensor as usize])
                .collect(),
        })
    }
}

impl<'a> ModuleBuilder<'a, '_> {
    /// Returns the module, which must have instructions, and whose references must lead to some.
    pub(crate) fn finish(mut self) -> Result<HloModule<'a>, GraphError> {
        if self.nodes.len() == 0 {
            return Err(GraphError::Empty);
        }
        // The last group of nodes ends with the module, whatever the name of the last computation
        // is.
        if self.node_splits.last() < Some(&self.nodes.len()) {
            self.node_splits.push(self.nodes.len());
        }
        let has_rules = !self.is_list || self.computations.entry_id.is_some_and(|id| id != 0);
        if let Some(broken) = self.broken.take().filter(|_| has_rules) {
            return Err(broken);
        }
        let edges = self.edges(has_rules)?;
        if has_rules {
            let Computations { all, entry_id, .. } = &self.computations;
            if let Some(empty) = all.iter().find(|computation| computation.nodes.is_empty()) {
                let fault = ModuleFault::NoInstructions;
                return Err(invalid_computation(&empty.name, fault));
            }
            // Id 0 is also protobuf's default, so it says nothing about an entry.
            if let Some(id) = entry_id.filter(|&id| id != 0)
                && self.computations.get(id).is_none()
            {
                return Err(GraphError::InvalidModule {
                    place: "the module".to_owned(),
                    fault: Box::new(ModuleFault::NoEntry { id }),
                });
            }
        }
        let mut arrays = self.nodes.take_arrays();
        arrays.edges = edges;
        Ok(HloModule {
            arrays,
            node_splits: self.node_splits,
            unknown_opcodes: self.unknown_opcodes,
            computations: self.computations,
            nodes: self.nodes,
            nodes_by_id: self.nodes_by_id,
        })
    }

    /// Returns the edges to operands and to the roots of callees, sorted and without duplicates. The operands of a node must
    /// be in its computation, unless the module only lists values.
    fn edges(&self, has_rules: bool) -> Result<Vec<[u32; 2]>, GraphError> {
        let mut edges = Vec::with_capacity(self.nodes.references());
        for computation in &self.computations.all {
            for position in computation.nodes.clone() {
                pace::pause();
                let node = u32::try_from(position).unwrap_or(u32::MAX);
                let first = edges.len();
                for &id in self.nodes.operands(position) {
                    let operand = self.nodes_by_id.get(&id).copied();
                    let operand = operand.filter(|&operand| {
                        !has_rules || computation.nodes.contains(&(operand as usize))
                    });
                    edges.push([
                        node,
                        operand.ok_or(GraphError::UnknownOperand { node, id })?,
                    ]);
                }
                for &id in self.nodes.callees(position) {
                    let called = self.computations.get(id);
                    let root = called.and_then(|called| self.nodes_by_id.get(&called.root_id));
                    edges.push([node, *root.ok_or(GraphError::UnknownCallee { node, id })?]);
                }
                // Nodes ascend, so sorting the edges of each node sorts all of them.
                edges[first..].sort_unstable();
            }
        }
        edges.dedup();
        Ok(edges)
    }
}
