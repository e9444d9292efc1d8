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
