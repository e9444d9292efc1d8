use hlorank_proto::xla::{HloInstructionProto, ShapeProto};

use crate::{
    FusionError, shortened,
    syntax::{OPAQUE, TOKEN, TUPLE},
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
            is_fusible: is_array && is_fusible(opcode),
            is_elementwise: is_elementwise(opcode),
            is_free: is_free(opcode),
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

/// Opcodes of which an element of the output needs the elements of the operands at the same index.
const ELEMENTWISE: [&str; 47] = [
    "abs",
    "add",
    "and",
    "atan2",
    "cbrt",
    "ceil",
    "clamp",
    "compare",
    "complex",
    "convert",
    "copy",
    "cosine",
    "count-leading-zeros",
    "divide",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "imag",
    "is-finite",
    "log",
    "log-plus-one",
    "logistic",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "not",
    "or",
    "popcnt",
    "power",
    "real",
    "remainder",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "select",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "sine",
    "sqrt",
    "subtract",
    "tan",
    "tanh",
    "xor",
];

/// Fusible opcodes that read their operands at other indices.
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

/// Returns whether an element of the output needs the elements of the operands at the same index alone.
pub(crate) fn is_elementwise(opcode: &str) -> bool {
    ELEMENTWISE.contains(&opcode)
}

/// Returns whether XLA:CPU can compute the opcode element by element inside a loop fusion. Gather, scatter,
/// select-and-scatter and sort are absent because its code generator aborts on them there.
pub(crate) fn is_fusible(opcode: &str) -> bool {
    is_elementwise(opcode) || OTHERS.contains(&opcode)
}

/// Returns whether the opcode takes no time, so that it is no kernel.
pub(crate) fn is_free(opcode: &str) -> bool {
    FREE.contains(&opcode)
}

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
