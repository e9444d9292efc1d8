//! The end of reading a module: references become edges, and checks that waited are made.

use super::{
    builder::{Computations, ModuleBuilder, invalid_computation},
    hlo_module::HloModule,
};
use crate::{GraphError, ModuleFault, pace};

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
