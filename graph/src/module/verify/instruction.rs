use hlorank_proto::xla::HloInstructionProto;

use super::{
    arrays::{Array, array},
    rules::rule,
    shape::check_shape,
};
use crate::{
    ModuleFault,
    module::{shapes::NodeShape, shapes::Shapes},
};

/// An instruction with the shapes of its operands.
#[derive(Clone, Copy)]
pub(super) struct Instruction<'a> {
    pub(super) proto: &'a HloInstructionProto,
    /// Nodes of the operands.
    operands: &'a [u32],
    shapes: &'a Shapes,
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
        let Some(shape) = self.operand(position) else { return Ok(None) };
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

/// Returns the shape of an instruction.
pub(crate) fn shape_of(proto: &HloInstructionProto) -> NodeShape<'_> {
    let shape = proto.shape.as_ref();
    NodeShape {
        element_type: shape.map_or(0, |shape| shape.element_type),
        elements: shape.map_or(0, |shape| shape.tuple_shapes.len()),
        dimensions: Some(shape.map_or(&[][..], |shape| &shape.dimensions)),
    }
}

/// Returns the number of operands that describe sparse operands.
fn sparse_operands(proto: &HloInstructionProto) -> usize {
    if proto.opcode == "dot" { proto.dot_sparsity.len() } else { 0 }
}

/// Checks an instruction against the shapes of its operands. `None` stands for operands that are not
/// read yet: then only what does not depend on them is checked.
pub(crate) fn check_instruction(
    proto: &HloInstructionProto,
    opcode: u8,
    operands: Option<&[u32]>,
    shapes: &Shapes,
) -> Result<(), ModuleFault> {
    check_shape(proto.shape.as_ref().ok_or(ModuleFault::NoShape)?)?;
    let rule = rule(opcode);
    rule.operands.check(proto.operand_ids.len().saturating_sub(sparse_operands(proto)))?;
    match operands {
        Some(operands) => (rule.check)(Instruction { proto, operands, shapes }),
        None => Ok(()),
    }
}
