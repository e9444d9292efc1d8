use std::sync::LazyLock;

use super::{
    convolution::convolution,
    dot::dot,
    elementwise::{
        binary, bitcast_convert, clamp, compare, complex, predicate, same_dimensions,
        same_dimensions_and_type, select, shift,
    },
    instruction::Instruction,
    movement::{
        broadcast, concatenate, dynamic_slice, dynamic_update_slice, get_tuple_element, iota, pad,
        reshape, reverse, slice, transpose, tuple,
    },
    reduction::{reduce, reduce_window, select_and_scatter},
};
use crate::{ModuleFault, opcode::opcode_name};

/// Checks an instruction with its operands.
type Check = fn(Instruction<'_>) -> Result<(), ModuleFault>;

/// What an opcode demands.
pub(super) struct Rule {
    pub(super) operands: Operands,
    pub(super) check: Check,
}

/// Valid numbers of operands.
#[derive(Clone, Copy, Debug)]
pub(super) enum Operands {
    Any,
    Exactly(usize),
    AtLeast(usize),
    /// At least two, and an even number: values with an initial value each.
    Pairs,
    /// At least three, and an odd number: operands and updates, and indices between them.
    Odd,
}

impl Operands {
    pub(super) fn check(self, found: usize) -> Result<(), ModuleFault> {
        let is_valid = match self {
            Self::Any => true,
            Self::Exactly(count) => found == count,
            Self::AtLeast(count) => found >= count,
            Self::Pairs => found >= 2 && found.is_multiple_of(2),
            Self::Odd => found >= 3 && !found.is_multiple_of(2),
        };
        if is_valid {
            Ok(())
        } else {
            Err(ModuleFault::Operands {
                expected: self.describe(),
                found,
            })
        }
    }

    fn describe(self) -> String {
        match self {
            Self::Any => "any number".to_owned(),
            Self::Exactly(count) => count.to_string(),
            Self::AtLeast(count) => format!("at least {count}"),
            Self::Pairs => "an even number, at least 2".to_owned(),
            Self::Odd => "an odd number, at least 3".to_owned(),
        }
    }
}

static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| (0..=u8::MAX).map(|id| named(opcode_name(id))).collect());

/// Returns the rule of an opcode id. Any instruction of an unknown opcode is valid.
pub(super) fn rule(opcode: u8) -> &'static Rule {
    &RULES[usize::from(opcode)]
}

fn named(opcode: &str) -> Rule {
    let (operands, check): (Operands, Check) = match opcode {
        "parameter" | "constant" | "partition-id" | "replica-id" | "rng-get-and-update-state" => {
            (Operands::Exactly(0), anything)
        }
        "iota" => (Operands::Exactly(0), iota),
        "ceil"
        | "cosine"
        | "exponential"
        | "exponential-minus-one"
        | "floor"
        | "log"
        | "log-plus-one"
        | "logistic"
        | "not"
        | "negate"
        | "popcnt"
        | "count-leading-zeros"
        | "round-nearest-afz"
        | "round-nearest-even"
        | "rsqrt"
        | "sign"
        | "sine"
        | "sqrt"
        | "tan"
        | "tanh"
        | "cbrt"
        | "reduce-precision" => (Operands::Exactly(1), same_dimensions_and_type),
        // Complex numbers become real, and the other way round.
        "abs" | "convert" | "imag" | "real" => (Operands::Exactly(1), same_dimensions),
        "is-finite" => (Operands::Exactly(1), predicate),
        "bitcast-convert" => (Operands::Exactly(1), bitcast_convert),
        "broadcast" => (Operands::Exactly(1), broadcast),
        "reshape" => (Operands::Exactly(1), reshape),
        "reverse" => (Operands::Exactly(1), reverse),
        "slice" => (Operands::Exactly(1), slice),
        "transpose" => (Operands::Exactly(1), transpose),
        "get-tuple-element" => (Operands::Exactly(1), get_tuple_element),
        "bitcast" | "copy" | "copy-done" | "cholesky" | "fft" | "get-dimension-size" | "while" => {
            (Operands::Exactly(1), anything)
        }
        "add" | "subtract" | "multiply" | "divide" | "remainder" | "power" | "maximum"
        | "minimum" | "and" | "or" | "xor" | "atan2" => (Operands::Exactly(2), binary),
        "shift-left" | "shift-right-arithmetic" | "shift-right-logical" => {
            (Operands::Exactly(2), shift)
        }
        "stochastic-convert" => (Operands::Exactly(2), same_dimensions),
        "compare" => (Operands::Exactly(2), compare),
        "complex" => (Operands::Exactly(2), complex),
        "dot" => (Operands::Exactly(2), dot),
        "convolution" => (Operands::Exactly(2), convolution),
        "pad" => (Operands::Exactly(2), pad),
        "add-dependency" | "gather" | "set-dimension-size" | "triangular-solve" => {
            (Operands::Exactly(2), anything)
        }
        "select" => (Operands::Exactly(3), select),
        "clamp" => (Operands::Exactly(3), clamp),
        "select-and-scatter" => (Operands::Exactly(3), select_and_scatter),
        "batch-norm-training" | "tuple-select" => (Operands::Exactly(3), anything),
        "batch-norm-inference" | "batch-norm-grad" => (Operands::Exactly(5), anything),
        "concatenate" => (Operands::AtLeast(1), concatenate),
        "dynamic-slice" => (Operands::AtLeast(1), dynamic_slice),
        "dynamic-update-slice" => (Operands::AtLeast(2), dynamic_update_slice),
        "conditional" | "sort" | "dynamic-reshape" => (Operands::AtLeast(1), anything),
        "reduce" => (Operands::Pairs, reduce),
        "reduce-window" => (Operands::Pairs, reduce_window),
        "scatter" => (Operands::Odd, anything),
        "tuple" => (Operands::Any, tuple),
        _ => (Operands::Any, anything),
    };
    Rule { operands, check }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among checks that can fail"
)]
fn anything(_: Instruction<'_>) -> Result<(), ModuleFault> {
    Ok(())
}
