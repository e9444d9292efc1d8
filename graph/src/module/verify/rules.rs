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

/// The rule of every opcode id. An instruction finds its own without comparing names.
static RULES: LazyLock<Vec<Rule>> =
    LazyLock::new(|| (0..=u8::MAX).map(|id| named(opcode_name(id))).collect());

/// Returns the rule of an opcode id. Any instruction of an unknown opcode is valid.
pub(super) fn rule(opcode: u8) -> &'static Rule {
    &RULES[usize::from(opcode)]
}

/// Opcodes of one operand whose result has its dimensions and element type.
const SAME: [&str; 22] = [
    "ceil",
    "cosine",
    "exponential",
    "exponential-minus-one",
    "floor",
    "log",
    "log-plus-one",
    "logistic",
    "not",
    "negate",
    "popcnt",
    "count-leading-zeros",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tan",
    "tanh",
    "cbrt",
    "reduce-precision",
];

fn named(opcode: &str) -> Rule {
    // Opcodes are grouped by their number of operands, since a check may index as many operands as
    // its group has.
    let counts = [
        (Operands::Exactly(0), of_none as fn(&str) -> Option<Check>),
        (Operands::Exactly(1), of_one),
        (Operands::Exactly(2), of_two),
        (Operands::Exactly(3), of_three),
        (Operands::Exactly(5), of_five),
        (Operands::AtLeast(1), of_several),
        (Operands::AtLeast(2), of_several_after_one),
        (Operands::Pairs, of_pairs),
        (Operands::Odd, of_odd),
    ];
    let found = counts.into_iter().find_map(|(operands, check)| {
        let check = check(opcode)?;
        Some(Rule { operands, check })
    });
    // Collectives, custom calls and unknown opcodes take any number of operands. A tuple may have
    // none.
    found.unwrap_or(Rule {
        operands: Operands::Any,
        check: if opcode == "tuple" { tuple } else { anything },
    })
}

fn of_none(opcode: &str) -> Option<Check> {
    Some(match opcode {
        "parameter" | "constant" | "partition-id" | "replica-id" | "rng-get-and-update-state" => {
            anything
        }
        "iota" => iota,
        _ => return None,
    })
}

fn of_one(opcode: &str) -> Option<Check> {
    Some(match opcode {
        same if SAME.contains(&same) => same_dimensions_and_type,
        // Complex numbers become real, and the other way round.
        "abs" | "convert" | "imag" | "real" => same_dimensions,
        "is-finite" => predicate,
        "bitcast-convert" => bitcast_convert,
        "broadcast" => broadcast,
        "reshape" => reshape,
        "reverse" => reverse,
        "slice" => slice,
        "transpose" => transpose,
        "get-tuple-element" => get_tuple_element,
        "bitcast" | "copy" | "copy-done" | "cholesky" | "fft" | "get-dimension-size" | "while" => {
            anything
        }
        _ => return None,
    })
}

fn of_two(opcode: &str) -> Option<Check> {
    Some(match opcode {
        "add" | "subtract" | "multiply" | "divide" | "remainder" | "power" | "maximum"
        | "minimum" | "and" | "or" | "xor" | "atan2" => binary,
        "shift-left" | "shift-right-arithmetic" | "shift-right-logical" => shift,
        "stochastic-convert" => same_dimensions,
        "compare" => compare,
        "complex" => complex,
        "dot" => dot,
        "convolution" => convolution,
        "pad" => pad,
        "add-dependency" | "gather" | "set-dimension-size" | "triangular-solve" => anything,
        _ => return None,
    })
}

fn of_three(opcode: &str) -> Option<Check> {
    Some(match opcode {
        "select" => select,
        "clamp" => clamp,
        "select-and-scatter" => select_and_scatter,
        "batch-norm-training" | "tuple-select" => anything,
        _ => return None,
    })
}

fn of_five(opcode: &str) -> Option<Check> {
    matches!(opcode, "batch-norm-inference" | "batch-norm-grad").then_some(anything)
}

fn of_several(opcode: &str) -> Option<Check> {
    Some(match opcode {
        "concatenate" => concatenate,
        "dynamic-slice" => dynamic_slice,
        "conditional" | "sort" | "dynamic-reshape" => anything,
        _ => return None,
    })
}

fn of_several_after_one(opcode: &str) -> Option<Check> {
    (opcode == "dynamic-update-slice").then_some(dynamic_update_slice)
}

fn of_pairs(opcode: &str) -> Option<Check> {
    Some(match opcode {
        "reduce" => reduce,
        "reduce-window" => reduce_window,
        _ => return None,
    })
}

fn of_odd(opcode: &str) -> Option<Check> {
    (opcode == "scatter").then_some(anything)
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "it stands among checks that can fail"
)]
fn anything(_: Instruction<'_>) -> Result<(), ModuleFault> {
    Ok(())
}
