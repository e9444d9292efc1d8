use hlorank_proto::xla::HloInstructionProto;

use super::{instruction::Instruction, rules::rule, shape::check_shape};
use crate::{ModuleFault, module::shapes::Shapes};

/// Returns the number of operands that describe sparse operands.
fn sparse_operands(proto: &HloInstructionProto) -> usize {
    if proto.opcode == "dot" {
        proto.dot_sparsity.len()
    } else {
        0
    }
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
    // The rules of dots index two operands, so what describes sparse ones does not count.
    let count = proto.operand_ids.len();
    rule.operands
        .check(count.saturating_sub(sparse_operands(proto)))?;
    match operands {
        Some(operands) => (rule.check)(Instruction {
            proto,
            operands,
            shapes,
        }),
        None => Ok(()),
    }
}
