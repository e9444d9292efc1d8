use crate::syntax::{PRED, S32, TOKEN, U32, complex_of, real_of};

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

/// Opcodes of two operands whose result has their element type.
const SAME_TYPE: [&str; 16] = [
    "add",
    "and",
    "atan2",
    "divide",
    "maximum",
    "minimum",
    "mulhi",
    "multiply",
    "or",
    "power",
    "remainder",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "subtract",
    "xor",
];

/// Opcodes whose result has the shape of the first operand.
const SAME_SHAPE: [&str; 37] = [
    "acos",
    "acosh",
    "add-dependency",
    "asin",
    "asinh",
    "atanh",
    "cbrt",
    "ceil",
    "cholesky",
    "copy",
    "cosh",
    "cosine",
    "count-leading-zeros",
    "domain",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "negate",
    "not",
    "popcnt",
    "reverse",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "select-and-scatter",
    "set-dimension-size",
    "sign",
    "sine",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "while",
];

/// Returns how XLA derives the shape of an instruction; `None` if it, or this reader, does not.
pub(super) fn rule(opcode: &str) -> Option<Rule> {
    Some(match opcode {
        same if SAME_SHAPE.contains(&same) => Rule::Operand(0),
        same if SAME_TYPE.contains(&same) => Rule::Elementwise(|element_type| element_type),
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
        _ => return None,
    })
}

/// Returns whether the shape of an instruction may be left out.
pub(super) fn has_derived_shape(opcode: &str) -> bool {
    rule(opcode).is_some()
}
