use hlorank_proto::xla::DotDimensionNumbers;

use super::{
    arrays::{Array, expect, expect_size},
    dimensions::{Distinct, expect_count},
    instruction::Instruction,
};
use crate::ModuleFault;

const CONTRACTING: &str = "contracting dimension";
const BATCH: &str = "batch dimension";

/// The dimensions of the left and the right operand that the attributes name.
struct Named<'a> {
    contracting: [&'a [i64]; 2],
    batch: [&'a [i64]; 2],
}

/// Batch dimensions, then those of the left operand that are not contracted, then those of the right one. Modules of the
/// first versions of XLA do not name the dimensions.
pub(super) fn dot(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(numbers) = &instruction.proto.dot_dimension_numbers else {
        return Ok(());
    };
    let (Some(left), Some(right)) = (instruction.array(0)?, instruction.array(1)?) else {
        return Ok(());
    };
    let named = Named::of(numbers);
    let [named_left, named_right] = named.distinct([left, right])?;
    let is_sparse = !instruction.proto.dot_sparsity.is_empty();
    named.check_sizes([left, right], is_sparse)?;
    let Some(result) = instruction.result_array()? else {
        return Ok(());
    };
    // Batch dimensions of both operands have equal sizes, so those of the left one stand for both.
    let batch = named.batch[0]
        .iter()
        .map(|&dimension| size(left, dimension));
    let free_of_left = named_left.others(left.dimensions);
    let free_of_right = named_right.others(right.dimensions);
    let sizes = batch.chain(free_of_left).chain(free_of_right);
    expect(result.dimensions, sizes)
}

impl<'a> Named<'a> {
    fn of(numbers: &'a DotDimensionNumbers) -> Self {
        Self {
            contracting: [
                &numbers.lhs_contracting_dimensions,
                &numbers.rhs_contracting_dimensions,
            ],
            batch: [&numbers.lhs_batch_dimensions, &numbers.rhs_batch_dimensions],
        }
    }

    /// Returns the dimensions of each operand. All of them must exist, and each has one role.
    fn distinct(&self, operands: [Array<'_>; 2]) -> Result<[Distinct; 2], ModuleFault> {
        let mut distinct = [Distinct::default(); 2];
        for (side, operand) in operands.iter().enumerate() {
            distinct[side].add(CONTRACTING, self.contracting[side], operand.rank())?;
            distinct[side].add(BATCH, self.batch[side], operand.rank())?;
        }
        Ok(distinct)
    }

    /// Checks that the dimensions that go together have equal sizes. All of them exist.
    fn check_sizes(&self, operands: [Array<'_>; 2], is_sparse: bool) -> Result<(), ModuleFault> {
        // A sparse operand holds only a part of the elements that are contracted.
        if !is_sparse {
            let what = "contracting dimensions of the right operand";
            check_pairs(what, self.contracting, operands)?;
        }
        let what = "batch dimensions of the right operand";
        check_pairs(what, self.batch, operands)
    }
}

/// Checks that dimensions of both operands go together. All of them exist.
fn check_pairs(
    what: &'static str,
    pairs: [&[i64]; 2],
    operands: [Array<'_>; 2],
) -> Result<(), ModuleFault> {
    expect_count(what, pairs[1].len(), pairs[0].len())?;
    for (&left, &right) in pairs[0].iter().zip(pairs[1]) {
        let what = || {
            format!("the sizes of dimension {left} of its left and {right} of its right operand")
        };
        expect_size(what, size(operands[0], left), size(operands[1], right))?;
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
