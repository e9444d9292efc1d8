//! Fusion: which instructions of a program are computed in one kernel, after Kaufman et al. 2021 (§5.2).
//!
//! A prepared module is one before fusion. Some nodes of its entry computation are slots, with a bit each: a fused node
//! is computed inside the kernels of its users, and every other node is written to memory. A kernel is a written node
//! with everything that is fused into it. It has one output, so every choice of bits is valid.
//! `graph/README.md` has the rules.

mod body;
mod kernel;
mod known;

pub(crate) use self::known::{KnownKernel, KnownKernels};
pub use self::{
    kernel::{Kernel, KernelLimits, KernelTooLarge},
    known::KernelMemory,
};
