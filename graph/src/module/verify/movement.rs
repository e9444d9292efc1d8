use hlorank_proto::xla::{
    hlo_instruction_proto::SliceDimensions, padding_config::PaddingDimension,
};

use super::{
    arrays::{Array, expect, expect_size, expect_types, is_same, shown},
    dimensions::{Distinct, expect_count, position, value},
    instruction::Instruction,
};
use crate::{
    ModuleFault,
    syntax::{TUPLE, UNBOUNDED, is_permutation, total_size},
};

/// Returns the first operand and the result, which have one element type.
fn moved(instruction: Instruction<'_>) -> Result<Option<[Array<'_>; 2]>, ModuleFault> {
    let both = instruction.first_and_result()?;
    if let Some([operand, result]) = both {
        expect_types(
            "an operand and the result",
            operand.element_type,
            result.element_type,
        )?;
    }
    Ok(both)
}

/// The elements stay.
pub(super) fn reshape(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let (Some(left), Some(right)) = (operand.elements(), result.elements()) else {
        return Ok(());
    };
    if left == right {
        return Ok(());
    }
    let what = format!(
        "the elements of {} and of {}",
        shown(operand.dimensions),
        shown(result.dimensions)
    );
    Err(ModuleFault::Sizes { what, left, right })
}

/// `dimensions` names a dimension of the operand for every dimension of the result.
pub(super) fn transpose(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let order = &instruction.proto.dimensions;
    expect_count("dimensions in its order", order.len(), operand.rank())?;
    // The quick check tells valid from invalid; the slower one finds which dimension to name.
    if !is_permutation(order, operand.rank()) {
        let mut used = Distinct::default();
        used.add("transposed dimension", order, operand.rank())?;
    }
    let sizes = order
        .iter()
        .filter_map(|&from| operand.dimensions.get(usize::try_from(from).ok()?));
    expect(result.dimensions, sizes.copied())
}

/// `dimensions` names a dimension of the result for every dimension of the operand.
pub(super) fn broadcast(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let places = &instruction.proto.dimensions;
    expect_count("broadcast dimensions", places.len(), operand.rank())?;
    for (&place, &size) in places.iter().zip(operand.dimensions) {
        let found = result.dimensions[position("broadcast dimension", place, result.rank())?];
        let what = || format!("the sizes of dimension {place} of its result and of its operand");
        expect_size(what, found, size)?;
    }
    Ok(())
}

pub(super) fn reverse(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let mut reversed = Distinct::default();
    reversed.add(
        "reversed dimension",
        &instruction.proto.dimensions,
        operand.rank(),
    )?;
    expect(result.dimensions, operand.dimensions.iter().copied())
}

/// A range with a stride in every dimension.
pub(super) fn slice(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let slices = &instruction.proto.slice_dimensions;
    expect_count("slices", slices.len(), operand.rank())?;
    for (dimension, (slice, &size)) in slices.iter().zip(operand.dimensions).enumerate() {
        check_slice(dimension, slice, size)?;
    }
    expect(result.dimensions, slices.iter().map(sliced))
}

/// Checks that a slice has a stride and is inside a dimension.
fn check_slice(dimension: usize, slice: &SliceDimensions, size: i64) -> Result<(), ModuleFault> {
    let of = |what| format!("the {what} of its slice in dimension {dimension}");
    let &SliceDimensions {
        start,
        limit,
        stride,
    } = slice;
    if stride < 1 {
        return Err(value(of("stride"), stride, "at least 1"));
    }
    if start < 0 || start > limit {
        let expected = format!("from 0 to its limit {limit}");
        return Err(value(of("start"), start, expected));
    }
    if limit > size && size != UNBOUNDED {
        let expected = format!("at most the size {size}");
        return Err(value(of("limit"), limit, expected));
    }
    Ok(())
}

/// Returns the number of elements in a slice. Its start is at least 0 and not above its limit.
fn sliced(slice: &SliceDimensions) -> i64 {
    // The quotient is rounded up without the sum that could overflow.
    let range = slice.limit - slice.start;
    range / slice.stride + i64::from(range % slice.stride > 0)
}

/// An index for every dimension; in old modules one array of all indices.
pub(super) fn dynamic_slice(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    check_indices(instruction, 1, operand)?;
    let sizes = &instruction.proto.dynamic_slice_sizes;
    expect_count("slice sizes", sizes.len(), operand.rank())?;
    check_part("the size of its slice", sizes, operand)?;
    expect(result.dimensions, sizes.iter().copied())
}

pub(super) fn dynamic_update_slice(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    check_indices(instruction, 2, operand)?;
    expect(result.dimensions, operand.dimensions.iter().copied())?;
    let Some(update) = instruction.array(1)? else {
        return Ok(());
    };
    expect_count("dimensions in its update", update.rank(), operand.rank())?;
    check_part("the size of its update", update.dimensions, operand)
}

/// Checks the number of operands behind the arrays.
fn check_indices(
    instruction: Instruction<'_>,
    arrays: usize,
    operand: Array<'_>,
) -> Result<(), ModuleFault> {
    // The length of the one array of the old form is not checked, because its rank alone marks the
    // form.
    let indices = instruction.operands() - arrays;
    let is_one_list =
        indices == 1 && matches!(instruction.array(arrays)?, Some(list) if list.rank() == 1);
    if is_one_list {
        Ok(())
    } else {
        expect_count("indices", indices, operand.rank())
    }
}

/// Checks that a part fits into an array of the same rank.
fn check_part(what: &str, part: &[i64], whole: Array<'_>) -> Result<(), ModuleFault> {
    for (dimension, (&part, &size)) in part.iter().zip(whole.dimensions).enumerate() {
        let is_inside = (part >= 0 && part <= size) || part == UNBOUNDED || size == UNBOUNDED;
        if !is_inside {
            return Err(value(
                format!("{what} in dimension {dimension}"),
                part,
                format!("from 0 to {size}"),
            ));
        }
    }
    Ok(())
}

/// Elements are added at both ends and between neighbours.
pub(super) fn pad(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = moved(instruction)? else {
        return Ok(());
    };
    let config = instruction.proto.padding_config.as_ref();
    let padding = config.map_or(&[][..], |config| &config.dimensions);
    expect_count("dimensions in its padding", padding.len(), operand.rank())?;
    let mut interior = padding.iter().map(|dimension| dimension.interior_padding);
    if let Some(found) = interior.find(|interior| *interior < 0) {
        return Err(value("the padding between neighbours", found, "at least 0"));
    }
    let sizes = operand.dimensions.iter().zip(padding);
    let sizes = sizes.map(|(&size, padding)| padded(size, padding));
    expect(result.dimensions, sizes)
}

/// Returns the size of a padded dimension.
fn padded(size: i64, padding: &PaddingDimension) -> i64 {
    if size == UNBOUNDED {
        return UNBOUNDED;
    }
    // Products and sums of 64-bit sizes fit into 128 bits, whatever a hostile module says.
    let wide = i128::from;
    let neighbours = size - i64::from(size > 0);
    let gaps = wide(neighbours) * wide(padding.interior_padding);
    let ends = wide(padding.edge_padding_low) + wide(padding.edge_padding_high);
    i64::try_from(wide(size) + gaps + ends).unwrap_or(UNBOUNDED)
}

/// Sizes in one dimension add up, and all others are equal.
pub(super) fn concatenate(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([first, result]) = moved(instruction)? else {
        return Ok(());
    };
    let dimensions = &instruction.proto.dimensions;
    expect_count("concatenated dimensions", dimensions.len(), 1)?;
    let along = position("concatenated dimension", dimensions[0], first.rank())?;
    let Some(total) = sum_of_sizes(instruction, first, along)? else {
        return Ok(());
    };
    let sizes = first.dimensions.iter().enumerate();
    let sizes = sizes.map(|(at, &size)| if at == along { total } else { size });
    expect(result.dimensions, sizes)
}

/// Returns the sum of the sizes of all operands in one dimension; `None` if an operand is not
/// known.
fn sum_of_sizes(
    instruction: Instruction<'_>,
    first: Array<'_>,
    along: usize,
) -> Result<Option<i64>, ModuleFault> {
    let mut total = 0_i64;
    for position in 0..instruction.operands() {
        let Some(operand) = instruction.array(position)? else {
            return Ok(None);
        };
        check_beside(operand, first, along)?;
        total = total_size(total, operand.dimensions[along]);
    }
    Ok(Some(total))
}

/// Checks that an operand has the rank of the first one, and its sizes in all dimensions but one.
fn check_beside(operand: Array<'_>, first: Array<'_>, along: usize) -> Result<(), ModuleFault> {
    expect_count("dimensions in an operand", operand.rank(), first.rank())?;
    let (before, from) = operand.dimensions.split_at(along);
    let (first_before, first_from) = first.dimensions.split_at(along);
    if is_same(before, first_before) && is_same(&from[1..], &first_from[1..]) {
        return Ok(());
    }
    Err(ModuleFault::Shape {
        expected: shown(first.dimensions),
        found: shown(operand.dimensions),
    })
}

/// Numbers along one dimension of the result.
pub(super) fn iota(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(result) = instruction.result_array()? else {
        return Ok(());
    };
    // Old modules do not name the dimension.
    match instruction.proto.dimensions[..] {
        [dimension] => position("iota dimension", dimension, result.rank()).map(drop),
        _ => Ok(()),
    }
}

pub(super) fn tuple(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let result = instruction.result();
    if result.element_type != TUPLE {
        return Ok(());
    }
    expect_count(
        "operands for the elements of its tuple",
        instruction.operands(),
        result.elements,
    )
}

/// The operand is a tuple that has the element.
pub(super) fn get_tuple_element(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(operand) = instruction.operand(0) else {
        return Ok(());
    };
    if operand.element_type != TUPLE {
        let what = "the element type of its operand";
        let found = operand.element_type.into();
        return Err(value(what, found, "13, which is a tuple"));
    }
    let index = instruction.proto.tuple_index;
    let elements = operand.elements;
    if usize::try_from(index).is_ok_and(|index| index < elements) {
        return Ok(());
    }
    let expected = format!("below {elements}, the number of elements of its operand");
    Err(value("its tuple index", index, expected))
}
