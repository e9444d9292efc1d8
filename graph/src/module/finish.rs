//! The end of reading a module: references become edges, and checks that waited are made.

use hlorank_proto::xla::HloInstructionProto;

use super::{
    builder::{ModuleBuilder, Unchecked, invalid_computation},
    hlo_module::HloModule,
    references::UNRESOLVED,
    verify::{check_calls, check_instruction},
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
        // References are resolved first, because the checks rely on operands and callees that
        // exist.
        let edges = self.edges()?;
        if has_rules {
            self.check_operands_behind()?;
            self.check_calls()?;
            self.check_entry()?;
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

    /// Checks the instructions that were read before their operands. All operands exist.
    fn check_operands_behind(&self) -> Result<(), GraphError> {
        for &Unchecked { node, computation } in &self.unchecked {
            pace::pause();
            // Only the few instructions that wait are decoded again; keeping them would take more
            // memory.
            let Some(instruction) = self.nodes.origins[node].instruction() else {
                continue;
            };
            self.check_within(computation, node, &instruction)?;
        }
        Ok(())
    }

    /// Checks an instruction with its operands, which must be in its computation.
    fn check_within(
        &self,
        computation: i64,
        node: usize,
        instruction: &HloInstructionProto,
    ) -> Result<(), GraphError> {
        let operands = self.operand_nodes(node)?;
        let computation = self.computations.get(computation);
        let nodes = computation.map_or(0..0, |computation| computation.nodes.clone());
        let is_outside = |&operand: &u32| !nodes.contains(&(operand as usize));
        let opcode = self.nodes.opcode(node);
        let checked = match operands.iter().position(is_outside) {
            Some(operand) => Err(ModuleFault::OtherComputation { operand }),
            None => check_instruction(instruction, opcode, Some(&operands), &self.nodes.shapes),
        };
        checked.map_err(|fault| self.invalid(node, instruction, fault))
    }

    /// Checks what nodes pass to the computations that they call. All of these are complete only at
    /// the end.
    fn check_calls(&self) -> Result<(), GraphError> {
        let calls = |&node: &usize| !self.nodes.references.callees(node).is_empty();
        for node in (0..self.nodes.len()).filter(calls) {
            pace::pause();
            let operands = self.operand_nodes(node)?;
            check_calls(node, &operands, &self.nodes, &self.computations).map_err(|fault| {
                let instruction = self.nodes.origins[node].instruction().unwrap_or_default();
                self.invalid(node, &instruction, fault)
            })?;
        }
        Ok(())
    }

    fn check_entry(&self) -> Result<(), GraphError> {
        if let Some(empty) = self.computations.empty() {
            let fault = ModuleFault::NoInstructions;
            return Err(invalid_computation(&empty.name, fault));
        }
        // Id 0 is also protobuf's default, so it says nothing about an entry.
        match self.computations.entry_id {
            Some(id) if id != 0 && self.computations.get(id).is_none() => {
                let fault = ModuleFault::NoEntry { id };
                Err(GraphError::InvalidModule {
                    place: "the module".to_owned(),
                    fault: Box::new(fault),
                })
            }
            _ => Ok(()),
        }
    }

    /// Returns the nodes of the operands of a node, in order.
    fn operand_nodes(&self, node: usize) -> Result<Vec<u32>, GraphError> {
        let number = u32::try_from(node).unwrap_or(u32::MAX);
        let operands = self.nodes.references.resolved(node);
        operands
            .map(|(id, operand)| self.operand(number, id, operand))
            .collect()
    }

    /// Returns the edges to operands and to the roots of callees, sorted and without duplicates.
    fn edges(&self) -> Result<Vec<[u32; 2]>, GraphError> {
        let references = &self.nodes.references;
        let mut edges = Vec::with_capacity(references.count());
        for (position, node) in pace::in_steps(64, (0..self.nodes.len()).zip(0..)) {
            let first = edges.len();
            for (id, operand) in references.resolved(position) {
                edges.push([node, self.operand(node, id, operand)?]);
            }
            for &id in references.callees(position) {
                edges.push([node, self.callee_root(node, id)?]);
            }
            // Nodes ascend, so sorting the edges of each node sorts all of them.
            edges[first..].sort_unstable();
        }
        edges.dedup();
        Ok(edges)
    }

    /// Returns the node of an operand, which is looked up if it was not known when its user was read.
    fn operand(&self, node: u32, id: i64, resolved: u32) -> Result<u32, GraphError> {
        if resolved != UNRESOLVED {
            return Ok(resolved);
        }
        self.nodes_by_id
            .get(&id)
            .copied()
            .ok_or(GraphError::UnknownOperand { node, id })
    }

    /// Returns the node of the root of a computation that a node calls.
    fn callee_root(&self, node: u32, id: i64) -> Result<u32, GraphError> {
        let computation = self.computations.get(id);
        let root = computation.and_then(|called| self.nodes_by_id.get(&called.root_id));
        root.copied().ok_or(GraphError::UnknownCallee { node, id })
    }
}
