use std::collections::HashMap;

use hlorank_proto::xla::HloInstructionProto;

use super::{post_order::post_order, shapes::ShapeId};
use crate::{
    GraphError, ModuleFault, TextError,
    module::{ModuleBuilder, Nodes, check_instruction},
    opcode::opcode_id,
    pace, shortened,
};

/// A computation that is being read.
pub(super) struct Computation<'a> {
    pub(super) id: i64,
    /// Positions of the instructions, by name.
    pub(super) positions: HashMap<&'a str, usize>,
    pub(super) nodes: Nodes<'a>,
    /// Shapes of the instructions.
    pub(super) shapes: Vec<ShapeId>,
    /// Numbers and shapes of the parameters.
    pub(super) parameters: Vec<(i64, ShapeId)>,
    /// Positions of the get-tuple-elements that are written as `%x#0`, by the position of the tuple and the index.
    pub(super) elements: HashMap<(usize, i64), usize>,
    /// The wrapped operation of each step of an asynchronous operation, by the position of the step.
    pub(super) wrapped: HashMap<usize, usize>,
    /// Position of the instruction that is marked `ROOT`.
    pub(super) root: Option<usize>,
    /// Control predecessors of each instruction: they run before it and are not its operands.
    pub(super) predecessors: HashMap<usize, Vec<usize>>,
}

impl<'a> Computation<'a> {
    pub(super) fn new(id: i64) -> Self {
        Self {
            id,
            positions: HashMap::new(),
            nodes: Nodes::default(),
            shapes: Vec::new(),
            parameters: Vec::new(),
            elements: HashMap::new(),
            wrapped: HashMap::new(),
            root: None,
            predecessors: HashMap::new(),
        }
    }

    /// Returns the id of an instruction, which is unique in the module.
    pub(super) fn instruction_id(&self, position: usize) -> i64 {
        // The limit on nodes keeps the number of computations and that of instructions far below
        // 2^31, so the two halves of an id do not overlap.
        self.id << 32 | i64::try_from(position).unwrap_or(i64::MAX)
    }

    /// Returns the positions of the operands of an instruction, given their ids.
    pub(super) fn positions_of(ids: &[i64]) -> impl DoubleEndedIterator<Item = usize> {
        ids.iter()
            .filter_map(|id| usize::try_from(id & i64::from(u32::MAX)).ok())
    }

    /// Returns the shapes of the operands of an instruction, given their ids.
    pub(super) fn shapes_of(&self, ids: &[i64]) -> Vec<ShapeId> {
        Self::positions_of(ids)
            .map(|position| self.shapes[position])
            .collect()
    }

    /// Returns the position of the root: the last instruction of the text if none is marked.
    pub(super) fn root_position(&self) -> usize {
        self.root.unwrap_or(self.nodes.len().saturating_sub(1))
    }

    /// Registers the name of the instruction that was added last.
    pub(super) fn register(&mut self, name: &'a str, is_root: bool) -> Result<(), TextError> {
        let position = self.nodes.len() - 1;
        if self.positions.insert(name, position).is_some() {
            return Err(TextError::DuplicateInstruction {
                name: shortened(name),
            });
        }
        if is_root && self.root.replace(position).is_some() {
            return Err(TextError::SecondRoot {
                name: shortened(name),
            });
        }
        Ok(())
    }

    /// Adds the instructions to the module in the order in which XLA serializes them. The text of a scheduled module
    /// has another order.
    pub(super) fn close(
        mut self,
        name: &str,
        builder: &mut ModuleBuilder<'a, '_>,
    ) -> Result<(), GraphError> {
        let root = self.root_position();
        // The root is known only at the end, after all instructions are featurized.
        self.nodes.mark_root(root);
        builder.begin(name, self.id, self.instruction_id(root))?;
        for position in pace::in_steps(16, self.post_order()) {
            builder.copy(self.instruction_id(position), &self.nodes, position)?;
        }
        builder.end(name)
    }

    /// Checks an instruction against its operands, which are above it.
    pub(super) fn check(&self, instruction: &HloInstructionProto) -> Result<(), ModuleFault> {
        // The checks look up operands by their position in the computation, since it is not in the
        // module yet.
        let operands: Vec<u32> = Self::positions_of(&instruction.operand_ids)
            .map(|position| u32::try_from(position).unwrap_or(u32::MAX))
            .collect();
        let opcode = opcode_id(&instruction.opcode);
        check_instruction(instruction, opcode, Some(&operands), &self.nodes.shapes)
    }

    fn post_order(&self) -> Vec<usize> {
        let operands = |position| Self::positions_of(self.nodes.references.operands(position));
        let predecessors = |position| {
            self.predecessors
                .get(&position)
                .into_iter()
                .flatten()
                .copied()
        };
        post_order(self.nodes.len(), operands, predecessors)
    }
}
