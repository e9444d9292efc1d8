use hlorank_proto::xla::HloInstructionProto;

use super::arrays::{Array, array};
use crate::{
    ModuleFault,
    module::shapes::{NodeShape, Shapes, shape_of},
};

/// An instruction with the shapes of its operands.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) proto: &'a HloInstructionProto,
    /// Nodes of the operands.
    pub(super) operands: &'a [u32],
    pub(super) shapes: &'a Shapes,
}

impl<'a> Instruction<'a> {
    /// Returns the number of operands.
    pub(super) fn operands(&self) -> usize {
        self.operands.len()
    }

    /// Returns the shape of an operand.
    pub(super) fn operand(&self, position: usize) -> Option<NodeShape<'a>> {
        self.shapes.get(*self.operands.get(position)? as usize)
    }

    /// Returns an operand that must be an array; `None` if its dimensions are not kept.
    pub(super) fn array(&self, position: usize) -> Result<Option<Array<'a>>, ModuleFault> {
        // The number of operands is checked before the rule of an opcode runs, so a missing one is
        // not reported here.
        let Some(shape) = self.operand(position) else {
            return Ok(None);
        };
        array(shape, || format!("operand {position}"))
    }

    /// Returns the shape of the result.
    pub(super) fn result(&self) -> NodeShape<'a> {
        shape_of(self.proto)
    }

    /// Returns the result, which must be an array; `None` if its dimensions are not kept.
    pub(super) fn result_array(&self) -> Result<Option<Array<'a>>, ModuleFault> {
        array(self.result(), || "its result".to_owned())
    }

    /// Returns the first operand and the result, which must be arrays.
    pub(super) fn first_and_result(&self) -> Result<Option<[Array<'a>; 2]>, ModuleFault> {
        let first = self.array(0)?;
        let result = self.result_array()?;
        Ok(first.zip(result).map(|(first, result)| [first, result]))
    }
}
