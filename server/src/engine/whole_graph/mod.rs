//! Evaluates whole-graph models: the graph as it is, with the configurations in chunks of the model's own size.
//!
//! If a score depends on the other configurations of its chunk, the chunks are what was sent in the order sent, the last
//! one shorter; nothing is merged, padded or left out. Otherwise each distinct configuration is evaluated once.

mod batch;
mod evaluate;

pub(super) use evaluate::score;
