//! The arrays of a graph, and the checks that all of them pass.

mod edges;
mod graph_arrays;

pub use self::graph_arrays::GraphArrays;
pub(crate) use self::{
    edges::{check_acyclic, check_ends, producers},
    graph_arrays::{check_range, clear_signs_of_zeros},
};
