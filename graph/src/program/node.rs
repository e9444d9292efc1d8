use hlorank_proto::xla::ShapeProto;

use super::opcodes::{is_elementwise, is_free, is_fusible};

/// Element types that are no arrays: tuple, opaque and token.
const NO_ARRAYS: [i32; 3] = [13, 14, 17];

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
        let is_array = !NO_ARRAYS.contains(&shape.element_type) && shape.tuple_shapes.is_empty();
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
