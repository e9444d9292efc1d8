//! `hlorank explain`: what makes the best and the worst configuration differ from the default.

mod bounds;
mod command;
mod compared;
mod exchange;
mod explanation;
mod kernels;
mod parts;
mod segments;
mod text;

pub(crate) use command::Explain;
pub(crate) use explanation::{Explained, Explanation, Ranked};
pub(crate) use kernels::Kernels;
pub(crate) use parts::{Part, opcode};
pub(crate) use text::effect;
