use hlorank_proto::xla::HloInstructionProto;

use super::hlo_module::HloModule;

/// Maximum number of dimensions in a description.
const MAX_SHOWN_DIMENSIONS: usize = 16;

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

impl HloModule<'_> {
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
        Some(NodeDescription {
            node,
            name: instruction.name,
            opcode: instruction.opcode,
            dimensions,
            tensor_ranks: self.tensor_ranks(node),
        })
    }

    /// Returns the ranks of the tensors whose layouts a configuration can set: the output and two
    /// operands.
    fn tensor_ranks(&self, node: u32) -> Vec<u32> {
        let operands = self.nodes.references.operands(node as usize).iter().take(2);
        let operands = operands.filter_map(|id| self.nodes_by_id.get(id));
        let tensors = std::iter::once(&node).chain(operands);
        tensors
            .map(|&tensor| self.nodes.ranks[tensor as usize])
            .collect()
    }
}
