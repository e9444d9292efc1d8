use std::collections::{BTreeMap, HashMap};

use super::{computations::Computations, nodes::Nodes};
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
}
