use std::{collections::HashMap, sync::LazyLock};

const BITCAST: u8 = 11;
const CONVOLUTION: u8 = 26;
const DOT: u8 = 34;
const FUSION: u8 = 41;
pub(crate) const PARAMETER: u8 = 63;
const RESHAPE: u8 = 75;

/// The opcode table of `TpuGraphs`. The name at position `i` has id `i + 1`, and every other opcode has id 0.
pub(crate) const NAMES: [&str; 120] = [
    "abs",
    "add",
    "add-dependency",
    "after-all",
    "all-reduce",
    "all-to-all",
    "atan2",
    "batch-norm-grad",
    "batch-norm-inference",
    "batch-norm-training",
    "bitcast",
    "bitcast-convert",
    "broadcast",
    "call",
    "ceil",
    "cholesky",
    "clamp",
    "collective-permute",
    "count-leading-zeros",
    "compare",
    "complex",
    "concatenate",
    "conditional",
    "constant",
    "convert",
    "convolution",
    "copy",
    "copy-done",
    "copy-start",
    "cosine",
    "custom-call",
    "divide",
    "domain",
    "dot",
    "dynamic-slice",
    "dynamic-update-slice",
    "exponential",
    "exponential-minus-one",
    "fft",
    "floor",
    "fusion",
    "gather",
    "get-dimension-size",
    "set-dimension-size",
    "get-tuple-element",
    "imag",
    "infeed",
    "iota",
    "is-finite",
    "log",
    "log-plus-one",
    "and",
    "not",
    "or",
    "xor",
    "map",
    "maximum",
    "minimum",
    "multiply",
    "negate",
    "outfeed",
    "pad",
    "parameter",
    "partition-id",
    "popcnt",
    "power",
    "real",
    "recv",
    "recv-done",
    "reduce",
    "reduce-precision",
    "reduce-window",
    "remainder",
    "replica-id",
    "reshape",
    "reverse",
    "rng",
    "rng-get-and-update-state",
    "rng-bit-generator",
    "round-nearest-afz",
    "rsqrt",
    "scatter",
    "select",
    "select-and-scatter",
    "send",
    "send-done",
    "shift-left",
    "shift-right-arithmetic",
    "shift-right-logical",
    "sign",
    "sine",
    "slice",
    "sort",
    "sqrt",
    "subtract",
    "tanh",
    "trace",
    "transpose",
    "triangular-solve",
    "tuple",
    "tuple-select",
    "while",
    "cbrt",
    "all-gather",
    "collective-permute-start",
    "collective-permute-done",
    "logistic",
    "dynamic-reshape",
    "all-reduce-start",
    "all-reduce-done",
    "reduce-scatter",
    "all-gather-start",
    "all-gather-done",
    "opt-barrier",
    "async-start",
    "async-update",
    "async-done",
    "round-nearest-even",
    "stochastic-convert",
    "tan",
];

static IDS: LazyLock<HashMap<&str, u8>> = LazyLock::new(|| NAMES.into_iter().zip(1..).collect());

/// Returns the id of an HLO opcode, which is matched exactly; 0 if it is not in the table.
#[must_use]
pub fn opcode_id(name: &str) -> u8 {
    IDS.get(name).copied().unwrap_or(0)
}

/// Returns the HLO opcode of an id; `unknown` for 0 and for ids past the table.
#[must_use]
pub fn opcode_name(id: u8) -> &'static str {
    // Ids begin at 1, so that 0 can stand for every opcode that is not in the table.
    usize::from(id)
        .checked_sub(1)
        .and_then(|index| NAMES.get(index))
        .copied()
        .unwrap_or("unknown")
}

/// Returns whether a tuner usually chooses the layouts of nodes with this opcode id: convolution, dot, reshape.
#[must_use]
pub fn is_usually_configurable(id: u8) -> bool {
    [CONVOLUTION, DOT, RESHAPE].contains(&id)
}

/// Returns whether only a compiler makes nodes with this opcode id, after it has assigned layouts: bitcast, fusion.
#[must_use]
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
    }

    #[test]
    fn opcodes_newer_than_the_table_are_zero() {
        for name in ["topk", "erf", "ragged-dot", "Convolution", ""] {
            assert_eq!(opcode_id(name), 0, "{name}");
        }
        assert_eq!(opcode_name(0), "unknown");
        assert_eq!(opcode_name(121), "unknown");
    }
}
