use super::{
    arrays::{Array, expect, is_same_size},
    dimensions::{Distinct, expect_count},
    instruction::Instruction,
};
use crate::ModuleFault;

const CONTRACTING: &str = "contracting dimension";
const BATCH: &str = "batch dimension";

/// Batch dimensions, then those of the left operand that are not contracted, then those of the right one. Modules of the
/// first versions of XLA do not name the dimensions.
pub(super) fn dot(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(numbers) = &instruction.proto.dot_dimension_numbers else {
        return Ok(());
    };
    let (Some(left), Some(right)) = (instruction.array(0)?, instruction.array(1)?) else {
        return Ok(());
    };
    let operands = [left, right];
    let contracting = [
        &numbers.lhs_contracting_dimensions[..],
        &numbers.rhs_contracting_dimensions,
    ];
    let batch = [
        &numbers.lhs_batch_dimensions[..],
        &numbers.rhs_batch_dimensions,
    ];
    let mut used = [Distinct::default(); 2];
    for (side, operand) in operands.iter().enumerate() {
        used[side].add(CONTRACTING, contracting[side], operand.rank())?;
        used[side].add(BATCH, batch[side], operand.rank())?;
    }
    // A sparse operand holds only a part of the elements that are contracted.
    if instruction.proto.dot_sparsity.is_empty() {
        let what = "contracting dimensions of the right operand";
        check_pairs(what, contracting, operands)?;
    }
    check_pairs("batch dimensions of the right operand", batch, operands)?;
    let Some(result) = instruction.result_array()? else {
        return Ok(());
    };
    let batch_sizes = batch[0].iter().map(|&dimension| size(left, dimension));
    let free_of_left = used[0].others(left.dimensions);
    let free_of_right = used[1].others(right.dimensions);
    let sizes = batch_sizes.chain(free_of_left).chain(free_of_right);
    expect(result.dimensions, sizes)
}

/// Checks that dimensions of both operands go together. All of them exist.
fn check_pairs(
    what: &'static str,
    pairs: [&[i64]; 2],
    operands: [Array<'_>; 2],
) -> Result<(), ModuleFault> {
    expect_count(what, pairs[1].len(), pairs[0].len())?;
    for (&left, &right) in pairs[0].iter().zip(pairs[1]) {
        let sizes = [size(operands[0], left), size(operands[1], right)];
        if !is_same_size(sizes[0], sizes[1]) {
            let what = format!(
                "the sizes of dimension {left} of its left and {right} of its right operand"
            );
            return Err(ModuleFault::Sizes {
                what,
                left: sizes[0],
                right: sizes[1],
            });
        }
    }
    Ok(())
}

fn size(operand: Array<'_>, dimension: i64) -> i64 {
    usize::try_from(dimension)
        .ok()
        .and_then(|at| operand.dimensions.get(at))
        .copied()
        .unwrap_or_default()
}
