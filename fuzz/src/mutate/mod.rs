//! Changes inputs.
//!
//! libFuzzer reaches most code by changing bytes. A zip file needs help, because its checksums must be right, and HLO text, because
//! its words are long.

mod bytes;
mod mutator;
mod npz;
mod text;

pub use self::{
    bytes::change_bytes,
    mutator::{Mutate, Mutator, mutate_bytes},
    npz::mutate_npz,
    text::mutate_text,
};
