use hlorank_proto::xla::ShapeProto;

use super::arrays::{OPAQUE, TOKEN, TUPLE, shown};
use crate::{ModuleFault, module::shapes::UNBOUNDED};

/// Element types below this number exist in every version of XLA since `TpuGraphs`. Newer ones are not checked.
const NEWER: i32 = 34;

/// Checks that a shape and its layout are possible.
pub(super) fn check_shape(shape: &ShapeProto) -> Result<(), ModuleFault> {
    if shape.element_type <= 0 {
        return Err(ModuleFault::ElementType {
            found: shape.element_type,
        });
    }
    if shape.element_type == TUPLE && !shape.dimensions.is_empty() {
        return Err(ModuleFault::ArrayAndTuple);
    }
    if is_array_type(shape.element_type) && !shape.tuple_shapes.is_empty() {
        return Err(ModuleFault::ArrayAndTuple);
    }
    let is_possible = |size: i64| size >= 0 || size == UNBOUNDED;
    if let Some(dimension) = shape.dimensions.iter().position(|&size| !is_possible(size)) {
        return Err(ModuleFault::NegativeSize {
            dimension,
            size: shape.dimensions[dimension],
        });
    }
    check_layout(shape)
}

fn is_array_type(element_type: i32) -> bool {
    element_type < NEWER && !matches!(element_type, TUPLE | OPAQUE | TOKEN)
}

/// A shape without a layout has the default one, and so has one whose layout lists nothing.
fn check_layout(shape: &ShapeProto) -> Result<(), ModuleFault> {
    let order = shape
        .layout
        .as_ref()
        .map_or(&[][..], |layout| &layout.minor_to_major);
    let rank = shape.dimensions.len();
    if order.is_empty() || is_permutation(order, rank) {
        return Ok(());
    }
    Err(ModuleFault::Layout {
        found: shown(order),
        rank,
    })
}

/// Returns whether a list has each number from 0 to `rank - 1` once.
pub(super) fn is_permutation(numbers: &[i64], rank: usize) -> bool {
    numbers.len() == rank
        && if rank <= 64 {
            is_short_permutation(numbers)
        } else {
            is_long_permutation(numbers)
        }
}

fn is_short_permutation(numbers: &[i64]) -> bool {
    let mut seen = 0_u64;
    for &number in numbers {
        let Some(position) = u32::try_from(number)
            .ok()
            .filter(|&number| (number as usize) < numbers.len())
        else {
            return false;
        };
        seen |= 1 << position;
    }
    seen.count_ones() as usize == numbers.len()
}

fn is_long_permutation(numbers: &[i64]) -> bool {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted
        .into_iter()
        .zip(0..)
        .all(|(number, expected)| number == expected)
}
