//! The loops of a kernel, and the columns of a tile that follow from them.
//!
//! A kernel computes its result in a loop for each dimension of the result and for each dimension that is reduced. The
//! loops are followed exactly from the root to every parameter, through transposes, broadcasts, reshapes, reductions, dots,
//! convolutions and windows, so that each dimension of a tensor is known as a sum of loops. What a tile reads, how far
//! apart, and how often then follows by arithmetic. Features and edges alone do not say this: they have neither the
//! dimensions of a dot nor the order of operands, which [`OperandLists`](crate::OperandLists) has.

mod columns;
mod follow;
mod guess;
mod instruction;
mod nest;

pub use nest::LoopNest;
