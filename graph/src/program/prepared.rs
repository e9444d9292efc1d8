use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use crate::{FusionError, shortened};

/// Opcodes that a module before fusion does not have.
const AFTER_FUSION: [&str; 2] = ["bitcast", "fusion"];

/// Checks that an instruction is one of a module before fusion, and that its array is row-major.
pub(crate) fn check_prepared(
    node: u32,
    instruction: &HloInstructionProto,
) -> Result<(), FusionError> {
    if AFTER_FUSION.contains(&instruction.opcode.as_str()) {
        let (name, opcode) = (shortened(&instruction.name), instruction.opcode.clone());
        return Err(FusionError::NotPrepared { node, name, opcode });
    }
    match instruction.shape.as_ref().and_then(other_order) {
        None => Ok(()),
        Some(minor_to_major) => Err(FusionError::layout(node, &instruction.name, minor_to_major)),
    }
}

/// Returns the layout of a shape that is not row-major. A shape without a layout is row-major.
fn other_order(shape: &ShapeProto) -> Option<&[i64]> {
    let minor_to_major = &shape.layout.as_ref()?.minor_to_major;
    // Row-major means that the last dimension is the minor one, so read from its end the list
    // counts up from 0.
    let ascends = minor_to_major
        .iter()
        .rev()
        .zip(0..)
        .all(|(&dimension, position)| dimension == position);
    let is_row_major = ascends && minor_to_major.len() == shape.dimensions.len();
    (!minor_to_major.is_empty() && !is_row_major).then_some(minor_to_major)
}
