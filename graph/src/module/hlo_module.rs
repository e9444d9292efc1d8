use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;

use super::{builder::Computations, nodes::Nodes};
use crate::GraphArrays;

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
    #[must_use]
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

    /// Describes a node by reading its instruction again; `None` if there is no such node.
    #[must_use]
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
