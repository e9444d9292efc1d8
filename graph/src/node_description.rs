use hlorank_proto::xla::HloInstructionProto;
use prost::Message as _;

use crate::{FusionProgram, Graph, GraphError, HloModule, Scope, Task, module::Origin, text};

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
        match *self.nodes.origins.get(node as usize)? {
            Origin::Message(bytes) => HloInstructionProto::decode(bytes).ok(),
            Origin::Text(instruction) => text::head(instruction),
        }
    }

    /// Describes a node by reading its instruction again; `None` if there is no such node.
    #[must_use]
    pub fn describe(&self, node: u32) -> Option<NodeDescription> {
        let position = node as usize;
        let instruction = self.head(node)?;
        let operands = self.nodes.references.operands(position).iter().take(2);
        let operands = operands.filter_map(|id| self.nodes_by_id.get(id));
        let tensors = std::iter::once(&node).chain(operands);
        let mut dimensions = instruction.shape.map_or_else(Vec::new, |shape| shape.dimensions);
        dimensions.truncate(MAX_SHOWN_DIMENSIONS);
        Some(NodeDescription {
            node,
            name: instruction.name,
            opcode: instruction.opcode,
            dimensions,
            tensor_ranks: tensors.map(|&tensor| self.nodes.ranks[tensor as usize]).collect(),
        })
    }

    /// Returns the graph of this module and the descriptions of its configurable nodes. Those of a program before fusion
    /// are its slots, whatever `configurable` has.
    pub fn into_described_graph(
        mut self,
        task: Task,
        configurable: Vec<u32>,
    ) -> Result<(Graph, Vec<NodeDescription>), GraphError> {
        let arrays = std::mem::take(&mut self.arrays);
        let graph = match task.kind().scope {
            Scope::Program => Graph::of_program(arrays, FusionProgram::new(&self)?)?,
            Scope::Kernel | Scope::Nodes => Graph::new(task, arrays, configurable)?,
        };
        let nodes = graph.configurable().iter().filter_map(|&node| self.describe(node)).collect();
        Ok((graph, nodes))
    }
}
