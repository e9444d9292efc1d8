use super::{
    arrays::{Array, expect, expect_types},
    instruction::Instruction,
};
use crate::{ModuleFault, syntax::PRED};

/// Bits of an element by `xla.PrimitiveType`; 0 where versions of XLA differ or the type has no bits.
const BITS: [i64; 34] = [
    0, 0, 8, 16, 32, 64, 8, 16, 32, 64, 16, 32, 64, 0, 0, 64, 16, 0, 128, 8, 8, 4, 4, 8, 8, 8, 2,
    2, 8, 8, 1, 1, 4, 8,
];

/// All operands have the dimensions of the result.
pub(super) fn same_dimensions(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    result_like(instruction, 0..instruction.operands()).map(drop)
}

/// All operands have the dimensions and the element type of the result.
pub(super) fn same_dimensions_and_type(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(result) = result_like(instruction, 0..instruction.operands())? else {
        return Ok(());
    };
    operand_type(instruction, 0, result)
}

/// Two operands of the type of the result.
pub(super) fn binary(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    same_dimensions_and_type(instruction)?;
    operand_types(instruction)
}

/// A value of the type of the result, and by how much it is shifted.
pub(super) fn shift(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    same_dimensions_and_type(instruction)
}

/// Two operands of one type give truth values.
pub(super) fn compare(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    predicate(instruction)?;
    operand_types(instruction)
}

/// The result has truth values.
pub(super) fn predicate(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(result) = result_like(instruction, 0..instruction.operands())? else {
        return Ok(());
    };
    expect_types("the result and truth values", result.element_type, PRED)
}

/// A real and an imaginary part of one type.
pub(super) fn complex(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    same_dimensions(instruction)?;
    operand_types(instruction)
}

/// Truth values, which may be one for all elements, and two values. Old modules select tuples too.
pub(super) fn select(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    // The error that the result is no array is dropped, because the result may be a tuple.
    let Ok(Some(_)) = instruction.result_array() else {
        return Ok(());
    };
    let Some(result) = result_like(instruction, 1..3)? else {
        return Ok(());
    };
    operand_type(instruction, 1, result)?;
    operand_type(instruction, 2, result)?;
    let Some(predicate) = instruction.array(0)? else {
        return Ok(());
    };
    expect_types("operand 0 and truth values", predicate.element_type, PRED)?;
    scalar_or_like(predicate, result)
}

/// Two bounds, which may be scalars, and a value between them.
pub(super) fn clamp(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(result) = result_like(instruction, 1..2)? else {
        return Ok(());
    };
    for position in 0..3 {
        operand_type(instruction, position, result)?;
        let Some(operand) = instruction.array(position)? else {
            return Ok(());
        };
        scalar_or_like(operand, result)?;
    }
    Ok(())
}

/// The bits stay, so that another width changes the last dimension.
pub(super) fn bitcast_convert(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = instruction.first_and_result()? else {
        return Ok(());
    };
    // The element type may become wider or narrower, so sizes differ, but the bits of all elements
    // together stay.
    let Some([before, after]) = bits(operand).zip(bits(result)).map(<[i64; 2]>::from) else {
        return Ok(());
    };
    if before == after {
        return Ok(());
    }
    Err(ModuleFault::Sizes {
        what: "the bits of its operand and of its result".to_owned(),
        left: before,
        right: after,
    })
}

fn bits(array: Array<'_>) -> Option<i64> {
    let width = BITS
        .get(usize::try_from(array.element_type).ok()?)
        .filter(|bits| **bits > 0)?;
    array.elements()?.checked_mul(*width)
}

/// Checks that some operands have the dimensions of the result, and returns the result. Old modules and handwritten text
/// have scalars beside such an operand, which XLA broadcasts.
fn result_like(
    instruction: Instruction<'_>,
    positions: std::ops::Range<usize>,
) -> Result<Option<Array<'_>>, ModuleFault> {
    let Some(result) = instruction.result_array()? else {
        return Ok(None);
    };
    // A scalar is broadcast to the other operands. If all are scalars, there is nothing to
    // broadcast to, and the last one must have the dimensions of the result.
    let count = positions.len();
    let mut scalars = 0;
    for position in positions {
        let Some(operand) = instruction.array(position)? else {
            return Ok(None);
        };
        scalars += usize::from(operand.dimensions.is_empty());
        if !operand.dimensions.is_empty() || scalars == count {
            expect(result.dimensions, operand.dimensions.iter().copied())?;
        }
    }
    Ok(Some(result))
}

fn operand_type(
    instruction: Instruction<'_>,
    position: usize,
    result: Array<'_>,
) -> Result<(), ModuleFault> {
    let Some(operand) = instruction.array(position)? else {
        return Ok(());
    };
    expect_types(
        "an operand and the result",
        operand.element_type,
        result.element_type,
    )
}

fn operand_types(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let (Some(left), Some(right)) = (instruction.array(0)?, instruction.array(1)?) else {
        return Ok(());
    };
    expect_types("its operands", left.element_type, right.element_type)
}

fn scalar_or_like(operand: Array<'_>, result: Array<'_>) -> Result<(), ModuleFault> {
    if operand.dimensions.is_empty() {
        return Ok(());
    }
    expect(result.dimensions, operand.dimensions.iter().copied())
}
