//! HLO modules, whatever they are read from.

mod builder;
mod nodes;
mod reader;
mod references;
mod wrapped;

use std::collections::{BTreeMap, HashMap};

use hlorank_proto::xla::HloInstructionProto;
use prost::Message as _;

pub use self::builder::shortened;
pub(crate) use self::{
    builder::ModuleBuilder,
    nodes::{Nodes, Origin},
    references::References,
    wrapped::{holds_computations, inner_module, wrapped_message},
};
use crate::{Graph, GraphArrays, GraphError, Limits, Task, text};

/// Dimensions that a description shows.
const MAX_SHOWN_DIMENSIONS: usize = 16;

/// An HLO module that was read and featurized.
#[derive(Debug)]
pub struct HloModule<'a> {
    /// Opcodes, features and edges.
    pub arrays: GraphArrays,
    /// Ends of the runs of nodes that `TpuGraphs` stores as `node_splits`, from 0 to the number of nodes.
    pub node_splits: Vec<usize>,
    /// Opcodes that the table does not have, with how many nodes have them.
    pub unknown_opcodes: BTreeMap<String, usize>,
    /// Where the nodes come from and what they refer to; the arrays are taken.
    nodes: Nodes<'a>,
    nodes_by_id: HashMap<i64, u32>,
}

/// A node as a person knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeDescription {
    /// Node number.
    pub node: u32,
    /// Name of the instruction.
    pub name: String,
    /// HLO opcode.
    pub opcode: String,
    /// Dimensions of the output; the first few of a rank that no tensor has.
    pub dimensions: Vec<i64>,
    /// Ranks of the output and of the first two operands.
    pub tensor_ranks: Vec<u32>,
}

impl<'a> HloModule<'a> {
    /// Reads a serialized `HloModuleProto` or `HloProto`.
    pub fn read(bytes: &'a [u8], limits: &Limits) -> Result<Self, GraphError> {
        reader::read(inner_module(bytes)?, limits)
    }

    /// Reads HLO text, as XLA prints it: the module that XLA's own parser makes of it. Computations keep the order
    /// of the text, and instructions come in the order in which XLA serializes them.
    pub fn read_text(hlo: &'a str, limits: &Limits) -> Result<Self, GraphError> {
        text::read(hlo, limits)
    }

    /// Number of nodes.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a module has at least one instruction")]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Name, opcode and shape of a node, read anew; `None` past the end.
    #[must_use]
    pub fn describe(&self, node: u32) -> Option<NodeDescription> {
        let position = node as usize;
        let instruction = match *self.nodes.origins.get(position)? {
            Origin::Message(bytes) => HloInstructionProto::decode(bytes).ok()?,
            Origin::Text(instruction) => text::head(instruction)?,
        };
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

    /// The graph of this module; `configurable` in slot order.
    pub fn into_graph(self, task: Task, configurable: Vec<u32>) -> Result<Graph, GraphError> {
        Graph::new(task, self.arrays, configurable)
    }

    /// The graph of this module, and its configurable nodes as a person knows them.
    pub fn into_described_graph(
        mut self,
        task: Task,
        configurable: Vec<u32>,
    ) -> Result<(Graph, Vec<NodeDescription>), GraphError> {
        let graph = Graph::new(task, std::mem::take(&mut self.arrays), configurable)?;
        let nodes = graph.configurable().iter().filter_map(|&node| self.describe(node)).collect();
        Ok((graph, nodes))
    }
}
