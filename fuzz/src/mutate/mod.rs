//! Changes inputs.
//!
//! libFuzzer reaches most code by changing bytes. A zip file needs help, because its checksums must be right.

mod bytes;
mod mutator;
mod npz;

pub use self::{
    bytes::change_bytes,
    mutator::{Mutate, Mutator, mutate_bytes},
    npz::mutate_npz,
};
