//! Configurations on the command line: JSON, short text, and random draws.

mod kinds;
mod layout;
mod tile;

pub(crate) use kinds::{ConfigurationForm, default_number, read, recombine, select, short};
pub(crate) use layout::random_layouts;
