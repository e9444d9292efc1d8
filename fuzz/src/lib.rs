//! Fuzzing of everything that reads bytes from outside.
//!
//! A target reads one kind of input and checks what came of it. The programs in `fuzz_targets` run a target under
//! libFuzzer, which looks for inputs that reach new code; [`Replay`] runs it on its corpus and on random changes of it.

#[path = "../../graph/tests/graphs/forms.rs"]
pub mod every_form;
mod fusion;
#[cfg(feature = "libfuzzer")]
pub mod libfuzzer;
pub mod mutate;
mod reading;
mod reference;
mod replay;
mod target;
pub mod targets;

pub use replay::{Replay, corpus_folder};
pub use target::Target;
