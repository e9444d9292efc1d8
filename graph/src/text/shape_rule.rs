use crate::{
    opcode::{is_elementwise, least_operands, opcode_id},
    syntax::{PRED, S32, TOKEN, U32, complex_of, real_of},
};

/// How a shape follows from the operands.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// It is that of an operand.
    Operand(usize),
    /// It has the dimensions of all operands, in the layout of the first, and an element type that follows from its own.
    Elementwise(fn(i32) -> i32),
    /// It has the layout of the condition and the element type of the second operand.
    Select,
    /// It is a scalar or token of this element type.
    Scalar(i32),
    /// It is the tuple of the operands.
    Tuple,
    /// It is that of the operand, or the tuple of the operands if there are several.
    Operands,
    /// It is an element of the first operand.
    Element,
    /// It is that of the root of the first called computation.
    Callee,
    /// It has the dimensions of the first operand and the element type of the called computation.
    Map,
    Transpose,
    Concatenate,
    Broadcast,
    Reduce,
    Dot,
}

/// Opcodes that are not elementwise, or newer than the table, whose result has the shape of the first operand.
const SAME_SHAPE: [&str; 14] = [
    "acos",
    "acosh",
    "add-dependency",
    "asin",
    "asinh",
    "atanh",
    "cholesky",
    "cosh",
    "domain",
    "reverse",
    "select-and-scatter",
    "set-dimension-size",
    "sinh",
    "while",
];

/// Returns how XLA derives the shape of an instruction; `None` if it, or this reader, does not.
pub(super) fn rule(opcode: &str) -> Option<Rule> {
    Some(match opcode {
        same if SAME_SHAPE.contains(&same) => Rule::Operand(0),
        "mulhi" => Rule::Elementwise(|element_type| element_type),
        "abs" | "real" | "imag" => Rule::Elementwise(real_of),
        "complex" => Rule::Elementwise(complex_of),
        "compare" | "is-finite" => Rule::Elementwise(|_| PRED),
        // The first operand of a clamp may be a scalar, and that of a triangular solve is the
        // matrix.
        "clamp" | "triangular-solve" => Rule::Operand(1),
        "select" => Rule::Select,
        "after-all" => Rule::Scalar(TOKEN),
        "replica-id" | "partition-id" => Rule::Scalar(U32),
        "get-dimension-size" => Rule::Scalar(S32),
        "tuple" => Rule::Tuple,
        // A sort of several arrays has a tuple of them as its result.
        "sort" => Rule::Operands,
        "get-tuple-element" => Rule::Element,
        "call" | "conditional" => Rule::Callee,
        "map" => Rule::Map,
        "transpose" => Rule::Transpose,
        "concatenate" => Rule::Concatenate,
        "broadcast" => Rule::Broadcast,
        "reduce" => Rule::Reduce,
        "dot" => Rule::Dot,
        "convert" => return None,
        _ if is_elementwise(opcode) => match least_operands(opcode_id(opcode)) {
            2 => Rule::Elementwise(|element_type| element_type),
            _ => Rule::Operand(0),
        },
        _ => return None,
    })
}
