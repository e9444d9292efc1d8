//! Everything that reads bytes from outside, held to its promises on millions of inputs that nobody sent yet.
//!
//! A target reads one kind of input and checks what came of it. Its inputs are those of its folder in `corpus`,
//! changed again and again by what knows their form; one that has an outcome that none had before is changed
//! further.

mod environment;
pub mod mutate;
mod reading;
mod run;
pub mod targets;

pub use environment::{Environment, corpus_folder};
pub use run::{Report, Target, run};
