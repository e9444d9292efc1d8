//! The rules of XLA's verifier that features and edges depend on. A module that breaks another rule is read as it is.

use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use crate::{
    ModuleFault,
    opcode::least_operands,
    syntax::{BUFFER, TUPLE, UNBOUNDED, has_layout, is_permutation},
};

/// Maximum number of dimensions in a message.
const MAX_SHOWN: usize = 16;

/// Checks that an instruction has a possible shape and the operands that its opcode needs.
pub(crate) fn check_instruction(
    instruction: &HloInstructionProto,
    opcode: u8,
) -> Result<(), ModuleFault> {
    check_shape(instruction.shape.as_ref().ok_or(ModuleFault::NoShape)?)?;
    let found = instruction.operand_ids.len();
    let least = least_operands(opcode);
    if found < least {
        return Err(ModuleFault::Operands { least, found });
    }
    Ok(())
}

fn check_shape(shape: &ShapeProto) -> Result<(), ModuleFault> {
    if shape.element_type <= 0 {
        return Err(ModuleFault::ElementType {
            found: shape.element_type,
        });
    }
    // A buffer has both dimensions and an element, and so may types that are newer.
    let is_array = shape.element_type < BUFFER && has_layout(shape.element_type);
    if is_array && !shape.tuple_shapes.is_empty()
        || shape.element_type == TUPLE && !shape.dimensions.is_empty()
    {
        return Err(ModuleFault::ArrayAndTuple);
    }
    let sizes = shape.dimensions.iter().enumerate();
    if let Some((dimension, &size)) = sizes
        .into_iter()
        .find(|(_, size)| **size < 0 && **size != UNBOUNDED)
    {
        return Err(ModuleFault::NegativeSize { dimension, size });
    }
    // A shape without a layout has the default one, and so has one whose layout lists nothing.
    let layout = shape.layout.as_ref();
    let order = layout.map_or(&[][..], |layout| &layout.minor_to_major);
    let rank = shape.dimensions.len();
    if order.is_empty() || is_permutation(order, rank) {
        return Ok(());
    }
    let found = order[..order.len().min(MAX_SHOWN)].to_vec();
    Err(ModuleFault::Layout { found, rank })
}

/// Checks the numbers of the parameters of a computation: they begin with 0, and each is there once.
pub(super) fn check_parameters(mut numbers: Vec<i64>) -> Result<(), ModuleFault> {
    numbers.sort_unstable();
    let mut expected = numbers.iter().zip(0..);
    match expected.position(|(&number, expected)| number != expected) {
        Some(missing) => Err(ModuleFault::Parameters {
            count: numbers.len(),
            missing,
        }),
        None => Ok(()),
    }
}
