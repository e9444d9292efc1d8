//! Flags and environment variables of the programs `hlorank-server` and `hlorank`: how their values are read, errors that
//! say where a value came from, and what a program says of its own arguments.

mod manual;
mod source;
mod units;
mod variables;

pub use manual::{print_completions, write_manual};
pub use source::matches_of_process;
pub use units::{MAX_SECONDS, bytes, bytes_within, duration, positive_duration};
pub use variables::{VARIABLES, unknown_variables};
