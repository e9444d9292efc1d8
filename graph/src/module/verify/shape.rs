use hlorank_proto::xla::ShapeProto;

use super::arrays::shown;
use crate::{
    ModuleFault,
    syntax::{OPAQUE, TOKEN, TUPLE, UNBOUNDED, is_permutation},
};

/// Element types below this number exist in every version of XLA since `TpuGraphs`. Newer ones are not checked.
const NEWER: i32 = 34;

/// Checks that a shape and its layout are possible.
pub(super) fn check_shape(shape: &ShapeProto) -> Result<(), ModuleFault> {
    if shape.element_type <= 0 {
        return Err(ModuleFault::ElementType {
            found: shape.element_type,
        });
    }
    if is_array_and_tuple(shape) {
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

/// Returns whether a shape has both dimensions and elements, although its type allows one of them.
fn is_array_and_tuple(shape: &ShapeProto) -> bool {
    // A buffer has an element, and it is not known what newer types have, so these types may have
    // both.
    let has_dimensions = shape.element_type == TUPLE && !shape.dimensions.is_empty();
    let has_elements = is_array_type(shape.element_type) && !shape.tuple_shapes.is_empty();
    has_dimensions || has_elements
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
