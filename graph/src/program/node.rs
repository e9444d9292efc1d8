use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use crate::{
    FusionError,
    opcode::is_elementwise,
    shortened,
    syntax::{OPAQUE, TOKEN, TUPLE, row_major},
};

/// What forming kernels needs to know of an instruction of the entry computation.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(crate) struct Node {
    /// Whether a loop fusion can compute it.
    pub(crate) is_fusible: bool,
    /// Whether an element of its output needs the elements of its operands at the same index alone.
    pub(crate) is_elementwise: bool,
    /// Whether it takes no time.
    pub(crate) is_free: bool,
    /// Whether it is a constant of one element, which every kernel that reads it copies.
    pub(crate) is_scalar_constant: bool,
}

impl Node {
    pub(crate) fn new(opcode: &str, shape: &ShapeProto) -> Self {
        let is_array =
            !matches!(shape.element_type, TUPLE | OPAQUE | TOKEN) && shape.tuple_shapes.is_empty();
        Self {
            is_fusible: is_array && (is_elementwise(opcode) || OTHERS.contains(&opcode)),
            is_elementwise: is_elementwise(opcode),
            is_free: FREE.contains(&opcode),
            is_scalar_constant: is_array
                && opcode == "constant"
                && shape.dimensions.iter().all(|&size| size == 1),
        }
    }

    /// The facts as bits, in the order of the fields.
    pub(crate) fn bits(self) -> u8 {
        let Self {
            is_fusible,
            is_elementwise,
            is_free,
            is_scalar_constant,
        } = self;
        let facts = [is_fusible, is_elementwise, is_free, is_scalar_constant]
            .into_iter()
            .zip(0..);
        facts.map(|(fact, bit)| u8::from(fact) << bit).sum()
    }
}

/// Opcodes that XLA:CPU can compute element by element inside a loop fusion, beside the elementwise ones. Gather, scatter,
/// select-and-scatter and sort are absent because its code generator aborts on them there.
const OTHERS: [&str; 12] = [
    "broadcast",
    "concatenate",
    "dynamic-slice",
    "dynamic-update-slice",
    "iota",
    "pad",
    "reduce",
    "reduce-window",
    "reshape",
    "reverse",
    "slice",
    "transpose",
];

/// Opcodes that take no time.
const FREE: [&str; 4] = ["constant", "get-tuple-element", "parameter", "tuple"];

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
    let Some(shape) = &instruction.shape else {
        return Ok(());
    };
    // Row-major means that the last dimension is the minor one. A shape without a layout is
    // row-major.
    match &shape.layout {
        Some(layout)
            if !layout.minor_to_major.is_empty()
                && layout.minor_to_major != row_major(shape.dimensions.len()) =>
        {
            let order = &layout.minor_to_major;
            Err(FusionError::layout(node, &instruction.name, order))
        }
        _ => Ok(()),
    }
}
