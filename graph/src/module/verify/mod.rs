//! Checks a module as XLA's verifier does, for what features depend on. What XLA accepts is accepted: unknown opcodes,
//! newer element types, dynamic dimensions, mixed precisions, and whatever a compiled module may have.

mod arrays;
mod check;
mod computations;
mod convolution;
mod dimensions;
mod dot;
mod elementwise;
mod instruction;
mod movement;
mod reduction;
mod rules;
mod shape;

pub(crate) use self::check::check_instruction;
pub(super) use self::computations::{check_calls, check_parameters};
