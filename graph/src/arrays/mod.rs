//! The arrays of a graph, and the checks that all of them pass.

mod edges;
mod graph_arrays;
mod range;

pub use self::graph_arrays::GraphArrays;
pub(crate) use self::{
    edges::{check_acyclic, check_ends, producers},
    graph_arrays::clear_signs_of_zeros,
    range::check_range,
};
