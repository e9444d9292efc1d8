use std::{collections::HashMap, sync::LazyLock};

const BITCAST: u8 = 11;
const CONVOLUTION: u8 = 26;
const DOT: u8 = 34;
const FUSION: u8 = 41;
pub(crate) const PARAMETER: u8 = 63;
const RESHAPE: u8 = 75;

/// The opcode table of `TpuGraphs`: each opcode, and the operands that it has at least. The name at position `i` has id
/// `i + 1`, and every other opcode has id 0.
const OPCODES: [(&str, u8); 120] = [
    ("abs", 1),
    ("add", 2),
    ("add-dependency", 2),
    ("after-all", 0),
    ("all-reduce", 0),
    ("all-to-all", 0),
    ("atan2", 2),
    ("batch-norm-grad", 5),
    ("batch-norm-inference", 5),
    ("batch-norm-training", 3),
    ("bitcast", 1),
    ("bitcast-convert", 1),
    ("broadcast", 1),
    ("call", 0),
    ("ceil", 1),
    ("cholesky", 1),
    ("clamp", 3),
    ("collective-permute", 0),
    ("count-leading-zeros", 1),
    ("compare", 2),
    ("complex", 2),
    ("concatenate", 1),
    ("conditional", 1),
    ("constant", 0),
    ("convert", 1),
    ("convolution", 2),
    ("copy", 1),
    ("copy-done", 1),
    ("copy-start", 0),
    ("cosine", 1),
    ("custom-call", 0),
    ("divide", 2),
    ("domain", 0),
    ("dot", 2),
    ("dynamic-slice", 1),
    ("dynamic-update-slice", 2),
    ("exponential", 1),
    ("exponential-minus-one", 1),
    ("fft", 1),
    ("floor", 1),
    ("fusion", 0),
    ("gather", 2),
    ("get-dimension-size", 1),
    ("set-dimension-size", 2),
    ("get-tuple-element", 1),
    ("imag", 1),
    ("infeed", 0),
    ("iota", 0),
    ("is-finite", 1),
    ("log", 1),
    ("log-plus-one", 1),
    ("and", 2),
    ("not", 1),
    ("or", 2),
    ("xor", 2),
    ("map", 0),
    ("maximum", 2),
    ("minimum", 2),
    ("multiply", 2),
    ("negate", 1),
    ("outfeed", 0),
    ("pad", 2),
    ("parameter", 0),
    ("partition-id", 0),
    ("popcnt", 1),
    ("power", 2),
    ("real", 1),
    ("recv", 0),
    ("recv-done", 0),
    ("reduce", 2),
    ("reduce-precision", 1),
    ("reduce-window", 2),
    ("remainder", 2),
    ("replica-id", 0),
    ("reshape", 1),
    ("reverse", 1),
    ("rng", 0),
    ("rng-get-and-update-state", 0),
    ("rng-bit-generator", 0),
    ("round-nearest-afz", 1),
    ("rsqrt", 1),
    ("scatter", 3),
    ("select", 3),
    ("select-and-scatter", 3),
    ("send", 0),
    ("send-done", 0),
    ("shift-left", 2),
    ("shift-right-arithmetic", 2),
    ("shift-right-logical", 2),
    ("sign", 1),
    ("sine", 1),
    ("slice", 1),
    ("sort", 1),
    ("sqrt", 1),
    ("subtract", 2),
    ("tanh", 1),
    ("trace", 0),
    ("transpose", 1),
    ("triangular-solve", 2),
    ("tuple", 0),
    ("tuple-select", 3),
    ("while", 1),
    ("cbrt", 1),
    ("all-gather", 0),
    ("collective-permute-start", 0),
    ("collective-permute-done", 0),
    ("logistic", 1),
    ("dynamic-reshape", 1),
    ("all-reduce-start", 0),
    ("all-reduce-done", 0),
    ("reduce-scatter", 0),
    ("all-gather-start", 0),
    ("all-gather-done", 0),
    ("opt-barrier", 0),
    ("async-start", 0),
    ("async-update", 0),
    ("async-done", 0),
    ("round-nearest-even", 1),
    ("stochastic-convert", 2),
    ("tan", 1),
];

/// The names in the table.
pub(crate) const NAMES: [&str; 120] = {
    // A constant may use neither iterators nor `for`.
    let mut names = [""; 120];
    let mut position = 0;
    while position < names.len() {
        names[position] = OPCODES[position].0;
        position += 1;
    }
    names
};

static IDS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| NAMES.into_iter().zip(1..).collect());

/// Returns the id of an HLO opcode, which is matched exactly; 0 if it is not in the table.
pub fn opcode_id(name: &str) -> u8 {
    IDS.get(name).copied().unwrap_or(0)
}

/// Returns the HLO opcode of an id; `unknown` for 0 and for ids past the table.
pub fn opcode_name(id: u8) -> &'static str {
    // Ids begin at 1, so that 0 can stand for every opcode that is not in the table.
    usize::from(id)
        .checked_sub(1)
        .and_then(|index| NAMES.get(index))
        .copied()
        .unwrap_or("unknown")
}

/// Returns the number of operands that an instruction with this opcode id has at least. Collectives, custom calls and
/// unknown opcodes may have none.
pub(crate) fn least_operands(id: u8) -> usize {
    let entry = usize::from(id).checked_sub(1);
    let entry = entry.and_then(|index| OPCODES.get(index));
    entry.map_or(0, |(_, least)| usize::from(*least))
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

/// Returns whether an element of the output needs the elements of the operands at the same index alone.
pub(crate) fn is_elementwise(opcode: &str) -> bool {
    ELEMENTWISE.contains(&opcode)
}

/// Returns whether a tuner usually chooses the layouts of nodes with this opcode id: convolution, dot, reshape.
pub fn is_usually_configurable(id: u8) -> bool {
    [CONVOLUTION, DOT, RESHAPE].contains(&id)
}

/// Returns whether only a compiler makes nodes with this opcode id, after it has assigned layouts: bitcast, fusion.
pub fn is_made_by_optimization(id: u8) -> bool {
    [BITCAST, FUSION].contains(&id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_tpugraphs() {
        let expected = [
            ("abs", 1),
            ("bitcast", BITCAST),
            ("convolution", CONVOLUTION),
            ("dot", DOT),
            ("fusion", FUSION),
            ("reshape", RESHAPE),
            ("tan", 120),
        ];
        for (name, id) in expected {
            assert_eq!(opcode_id(name), id, "{name}");
            assert_eq!(opcode_name(id), name);
        }
        assert_eq!([0, 121].map(opcode_name), ["unknown"; 2]);
    }
}
