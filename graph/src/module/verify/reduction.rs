use hlorank_proto::xla::WindowDimension;

use super::{
    arrays::{Array, expect},
    dimensions::{Distinct, expect_count, value},
    instruction::Instruction,
};
use crate::{ModuleFault, syntax::UNBOUNDED};

/// The dimensions that are reduced disappear.
pub(super) fn reduce(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(first) = inputs(instruction)? else {
        return Ok(());
    };
    let mut reduced = Distinct::default();
    reduced.add(
        "reduced dimension",
        &instruction.proto.dimensions,
        first.rank(),
    )?;
    match result(instruction)? {
        Some(result) => expect(result.dimensions, reduced.others(first.dimensions)),
        None => Ok(()),
    }
}

/// Every dimension has as many elements as the window has places in it.
pub(super) fn reduce_window(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some(first) = inputs(instruction)? else {
        return Ok(());
    };
    let expected = window_sizes(instruction, first)?;
    match result(instruction)? {
        Some(result) => expect(result.dimensions, expected.iter().copied()),
        None => Ok(()),
    }
}

/// The result has the dimensions of the operand, and the source those of the places of the window.
pub(super) fn select_and_scatter(instruction: Instruction<'_>) -> Result<(), ModuleFault> {
    let Some([operand, result]) = instruction.first_and_result()? else {
        return Ok(());
    };
    expect(result.dimensions, operand.dimensions.iter().copied())?;
    let expected = window_sizes(instruction, operand)?;
    let Some(source) = instruction.array(1)? else {
        return Ok(());
    };
    expect(source.dimensions, expected.iter().copied())
}

/// Returns the first of the values that are reduced. All of them have the same dimensions, and initial values have none.
fn inputs(instruction: Instruction<'_>) -> Result<Option<Array<'_>>, ModuleFault> {
    // The first half of the operands are values, and the second half are their initial values.
    let count = instruction.operands() / 2;
    let Some(first) = instruction.array(0)? else {
        return Ok(None);
    };
    for position in 1..instruction.operands() {
        let Some(other) = instruction.array(position)? else {
            return Ok(None);
        };
        if position < count {
            expect(other.dimensions, first.dimensions.iter().copied())?;
        } else {
            expect_count("dimensions in an initial value", other.rank(), 0)?;
        }
    }
    Ok(Some(first))
}

/// Returns the result if it is one array. Several values give a tuple.
fn result(instruction: Instruction<'_>) -> Result<Option<Array<'_>>, ModuleFault> {
    match instruction.operands() / 2 {
        1 => instruction.result_array(),
        values => {
            expect_count(
                "elements in its tuple",
                instruction.result().elements,
                values,
            )?;
            Ok(None)
        }
    }
}

fn window_sizes(instruction: Instruction<'_>, operand: Array<'_>) -> Result<Vec<i64>, ModuleFault> {
    let window = instruction
        .proto
        .window
        .as_ref()
        .map_or(&[][..], |window| &window.dimensions);
    expect_count("dimensions in its window", window.len(), operand.rank())?;
    operand
        .dimensions
        .iter()
        .zip(window)
        .map(|(&size, dimension)| window_size(size, dimension))
        .collect()
}

/// Returns the number of places of a window in a dimension.
pub(super) fn window_size(size: i64, window: &WindowDimension) -> Result<i64, ModuleFault> {
    let positive = [
        ("the size of its window", window.size),
        ("the stride of its window", window.stride),
        ("the dilation of its window", window.window_dilation),
        ("the dilation of its base", window.base_dilation),
    ];
    let mut is_known = size != UNBOUNDED;
    for (what, found) in positive {
        if found < 1 && found != UNBOUNDED {
            return Err(value(what, found, "at least 1"));
        }
        is_known &= found != UNBOUNDED;
    }
    Ok(if is_known {
        i64::try_from(places(size, window)).unwrap_or(UNBOUNDED)
    } else {
        UNBOUNDED
    })
}

/// Returns the number of places of a window in a dimension of known size. Intermediate values of
/// 128 bits do not overflow.
fn places(size: i64, window: &WindowDimension) -> i128 {
    let wide = i128::from;
    // Dilation puts `dilation - 1` holes between neighbours.
    let dilated = |size: i64, dilation: i64| (wide(size) - 1) * wide(dilation) + 1;
    let base = match size {
        0 => 0,
        size => dilated(size, window.base_dilation),
    };
    let padded = base + wide(window.padding_low) + wide(window.padding_high);
    let span = dilated(window.size, window.window_dilation);
    if padded < span {
        0
    } else {
        (padded - span) / wide(window.stride) + 1
    }
}
