//! The arrays of a graph, and the checks that all of them pass.

mod graph_arrays;

pub use self::graph_arrays::GraphArrays;
pub(crate) use self::graph_arrays::{
    check_acyclic, check_ends, check_range, clear_signs_of_zeros, producers,
};
