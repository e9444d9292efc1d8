//! Evaluates whole-graph models: the graph, or what pruning keeps of it, with the configurations in chunks of the model's
//! own size.
//!
//! If a score depends on the other configurations of its chunk, the chunks are what was sent in the order sent, or in the
//! orders of the model; nothing is merged, padded or left out. Otherwise each distinct configuration is evaluated once.

mod batch;
mod evaluate;
mod passes;

pub(super) use evaluate::{check, score};
