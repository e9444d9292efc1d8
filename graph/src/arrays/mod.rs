//! The arrays of a graph, and the checks that all of them pass.

mod graph_arrays;
mod operand_lists;

pub(crate) use self::graph_arrays::{
    DIMENSIONS, check_acyclic, check_ends, check_finite, check_range, clear_signs_of_zeros,
    producers,
};
pub(crate) use self::operand_lists::{InstructionLists, MAX_DIMENSIONS};
pub use self::{graph_arrays::GraphArrays, operand_lists::OperandLists};
